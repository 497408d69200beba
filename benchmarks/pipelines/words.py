"""The words that the generated sources draw from."""

from __future__ import annotations

COUNTRIES = ("DE", "FR", "IT", "ES", "NL", "PL", "SE", "US", "CA", "GB", "JP", "BR")
CITIES = tuple(f"{part} {kind}" for part in ("North", "South", "East", "West", "New", "Old", "Upper", "Lower")
               for kind in ("Haven", "Bridge", "Field", "Ford", "Mills", "Port", "Hill", "Wells"))  # fmt: skip
CATEGORIES = ("books", "garden", "kitchen", "music", "office", "outdoor", "sports", "toys", "tools", "wine",
              "shoes", "bags", "games", "health", "baby", "pets", "auto", "art", "film", "food")  # fmt: skip
BRANDS = tuple(f"Brand {number:02d}" for number in range(60))
STATUSES = ("created", "paid", "packed", "shipped", "delivered", "returned", "cancelled")
CHANNELS = ("web", "app", "store", "phone")
PAYMENTS = ("card", "transfer", "wallet", "invoice", "voucher")
DOMAINS = ("mail.example", "post.example", "inbox.example", "web.example", "work.example", "school.example",
           "home.example", "news.example")  # fmt: skip
TAGS = ("new", "sale", "gift", "bulk", "fragile", "express", "eco", "import", "limited", "bundle")
EVENTS = ("view", "search", "cart", "purchase", "share")
DEVICES = ("phone", "tablet", "laptop", "desktop")
REGIONS = ("north", "south", "east", "west", "center")
SEGMENTS = ("consumer", "business", "student", "partner")
FIRST_NAMES = ("Ada", "Ben", "Clara", "Dev", "Elif", "Finn", "Grace", "Hugo", "Ines", "Jonas", "Kira", "Luca",
               "Mina", "Noah", "Olga", "Paul")  # fmt: skip
LAST_NAMES = ("Abel", "Brook", "Chen", "Diaz", "Ebert", "Fox", "Garcia", "Haas", "Ito", "Jensen", "Kim", "Lopez",
              "Meyer", "Novak", "Okoro", "Petit")  # fmt: skip
_SYLLABLES = ("ba", "co", "di", "fu", "ga", "le", "mo", "ni", "pe", "ro", "su", "ta", "ve", "zo")
WORDS = tuple(a + b + c for a in _SYLLABLES for b in _SYLLABLES for c in ("n", "r", "st", "l", "m"))
