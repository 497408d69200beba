from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PlanMessage(_message.Message):
    __slots__ = ("version", "root", "strings", "integers", "doubles", "blobs", "decimals", "big_integers", "enum_members", "types", "schemas", "tables", "layouts", "blocks")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    INTEGERS_FIELD_NUMBER: _ClassVar[int]
    DOUBLES_FIELD_NUMBER: _ClassVar[int]
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    DECIMALS_FIELD_NUMBER: _ClassVar[int]
    BIG_INTEGERS_FIELD_NUMBER: _ClassVar[int]
    ENUM_MEMBERS_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    SCHEMAS_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    LAYOUTS_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    version: int
    root: int
    strings: _containers.RepeatedScalarFieldContainer[str]
    integers: _containers.RepeatedScalarFieldContainer[int]
    doubles: _containers.RepeatedScalarFieldContainer[float]
    blobs: _containers.RepeatedScalarFieldContainer[bytes]
    decimals: _containers.RepeatedScalarFieldContainer[str]
    big_integers: _containers.RepeatedScalarFieldContainer[str]
    enum_members: _containers.RepeatedCompositeFieldContainer[EnumMember]
    types: bytes
    schemas: _containers.RepeatedScalarFieldContainer[bytes]
    tables: _containers.RepeatedScalarFieldContainer[bytes]
    layouts: _containers.RepeatedCompositeFieldContainer[Layout]
    blocks: _containers.RepeatedCompositeFieldContainer[Block]
    def __init__(self, version: _Optional[int] = ..., root: _Optional[int] = ..., strings: _Optional[_Iterable[str]] = ..., integers: _Optional[_Iterable[int]] = ..., doubles: _Optional[_Iterable[float]] = ..., blobs: _Optional[_Iterable[bytes]] = ..., decimals: _Optional[_Iterable[str]] = ..., big_integers: _Optional[_Iterable[str]] = ..., enum_members: _Optional[_Iterable[_Union[EnumMember, _Mapping]]] = ..., types: _Optional[bytes] = ..., schemas: _Optional[_Iterable[bytes]] = ..., tables: _Optional[_Iterable[bytes]] = ..., layouts: _Optional[_Iterable[_Union[Layout, _Mapping]]] = ..., blocks: _Optional[_Iterable[_Union[Block, _Mapping]]] = ...) -> None: ...

class EnumMember(_message.Message):
    __slots__ = ("type", "name")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    type: str
    name: str
    def __init__(self, type: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class Layout(_message.Message):
    __slots__ = ("type", "fields")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    type: str
    fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, type: _Optional[str] = ..., fields: _Optional[_Iterable[str]] = ...) -> None: ...

class Block(_message.Message):
    __slots__ = ("layout", "values", "lengths")
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    layout: int
    values: _containers.RepeatedScalarFieldContainer[int]
    lengths: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, layout: _Optional[int] = ..., values: _Optional[_Iterable[int]] = ..., lengths: _Optional[_Iterable[int]] = ...) -> None: ...
