"""Access keys on the wire."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictInt

from engram.api.schemas import MAX_ID, CollectionName, Flag, JudgeName, Model, ReaderNames, ResponseModel, Whole
from engram.services.auth.access_key_service import AccessKeyRequest, NewAccessKey

ScopeName = Literal[
    "query", "read", "ingest", "judge", "judge-as", "audit", "moderate", "vouch", "llm", "act-as", "admin"
]
MAX_DAYS = 36_500
MAX_GRACE_SECONDS = 30 * 24 * 3600
EXAMPLES: list[JsonValue] = [{"name": "shop", "scopes": {"docs": ["query", "judge"]}, "days": 90}]


class AccessKeyIn(Model):
    """A key to make."""

    model_config = ConfigDict(json_schema_extra={"examples": EXAMPLES})

    name: JudgeName = Field(description="Whose key it is. One principal may have several.")
    scopes: dict[CollectionName | Literal["*"], list[ScopeName]] = Field(
        min_length=1,
        max_length=1_000,
        description="What it allows, by collection; `*` stands for all of the tenant's, those to come included.",
    )
    judge: JudgeName | None = Field(default=None, description="Whose its verdicts are; by default the principal's.")
    trusted: Flag = Field(
        default=False,
        description="Whether that judge counts in full from its first verdict on; see docs/access.md.",
    )
    llm_tokens: Annotated[StrictInt, Field(ge=0, le=MAX_ID), Whole] | None = Field(
        default=None, description="What a language model may read and write for it on a day (UTC)."
    )
    principals: ReaderNames = Field(
        default=[], description="What it is among the readers of passages, as `group:hr`; see docs/access.md."
    )
    days: float | None = Field(default=None, gt=0, le=MAX_DAYS, strict=True, description="For how long it counts.")

    def to_request(self) -> AccessKeyRequest:
        """Return the request as the service takes it."""
        return AccessKeyRequest(
            name=self.name,
            scopes=dict(self.scopes),
            judge=self.judge,
            trusted=self.trusted,
            llm_tokens=self.llm_tokens,
            days=self.days,
            reads_as=self.principals,
        )


class RotateIn(Model):
    """Rotation of an access key."""

    grace_seconds: float = Field(
        default=0.0,
        ge=0,
        le=MAX_GRACE_SECONDS,
        strict=True,
        description="For how long the old one counts beside the new one.",
    )


class AccessKeyOut(ResponseModel):
    """A key as it is known: all but itself."""

    key_id: int = Field(validation_alias="id")
    name: str
    tenant: str
    judge: str
    trusted: bool
    ends_in: str = Field(validation_alias="hint", description="The key's last characters.")
    scopes: dict[str, list[str]] = Field(description="Collection, or `*` for all -> what is allowed.")
    llm_tokens: int | None
    principals: list[str] = Field(
        validation_alias="reads_as", description="What it is among the readers of passages."
    )
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class IssuedAccessKey(AccessKeyOut):
    """A key that was made."""

    key: str = Field(description="The key itself, which is shown this once and stored nowhere.")

    @classmethod
    def from_new_key(cls, new_key: NewAccessKey) -> "IssuedAccessKey":
        """Convert a new key."""
        return cls(key=new_key.key, **AccessKeyOut.model_validate(new_key.stored).model_dump())


class AccessKeysOut(BaseModel):
    """Keys in the order in which they were made."""

    keys: list[AccessKeyOut]
    next_after: int | None = Field(description="Pass as after for the next page; null at the end.")


class WhoOut(BaseModel):
    """Identity of a request."""

    name: str
    tenant: str
    judge: str | None = Field(description="Whose its verdicts are; null: whom each names.")
    trusted: bool
    scopes: dict[str, list[str]]
    llm_tokens: int | None
    principals: list[str] = Field(description="What you are among the readers of passages.")
    wings: list[str] = Field(description="Wings that are on. Routes of another wing answer 404.")


class QuotaOut(ResponseModel):
    """Quota of a tenant and its use."""

    kind: Literal[
        "passages",
        "jobs",
        "queries",
        "verdicts",
        "llm_tokens",
        "judges",
        "collections",
        "keys",
        "sessions",
        "facts",
    ]
    used: int = Field(
        description=(
            "Passages, collections, keys and judges that it has, jobs open; of the others, those of today (UTC)."
        )
    )
    limit: int | None = Field(description="Null: any number, and then days are not counted.")


class QuotasOut(BaseModel):
    """A tenant's quotas."""

    tenant: str
    quotas: list[QuotaOut]


class TenantRemoval(BaseModel):
    """A tenant that is being removed."""

    tenant: str
