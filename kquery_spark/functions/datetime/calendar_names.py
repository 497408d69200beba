"""The English names of days, months and halves of a day in Java's ``Locale.US``."""

from __future__ import annotations

#: From Monday to Sunday.
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DAYS_SHORT = tuple(day[:3] for day in DAYS)
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
MONTHS_SHORT = tuple(month[:3] for month in MONTHS)
HALVES_OF_DAY = ("AM", "PM")
