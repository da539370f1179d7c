"""Settings of what a worker connects to."""

from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from junhong_cmp.config.values import Duration, TextList, UrlShape, check_postgres_options, parse_json


class RedisSettings(BaseModel):
    """Where Redis is."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True)

    url: Annotated[
        SecretStr,
        AfterValidator(
            UrlShape("redis", "rediss", "redis-socket", "unix", "redis-sentinel", "redis-cluster"),
        ),
    ] = Field(description="Redis 地址，例如 redis://127.0.0.1:6379/0；另有 Sentinel 与 Cluster 写法")
    pool_size: int = Field(32, ge=2, le=1_000, description="每个进程的 Redis 连接数上限")
    socket_timeout: Duration = Field(
        timedelta(seconds=5),
        gt=timedelta(0),
        description="单次 Redis 往返的时限",
    )


class PostgresSettings(BaseModel):
    """Where PostgreSQL is."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True)

    dsn: Annotated[
        SecretStr, AfterValidator(UrlShape("postgresql", "postgres")), AfterValidator(check_postgres_options)
    ] = Field(
        description="PostgreSQL 连接串，例如 postgresql://用户@主机:5432/库名",
    )
    password: SecretStr | None = Field(None, description="PostgreSQL 密码；设置后连接串中不要再写密码")
    pool_size: int = Field(10, ge=2, le=200, description="每个进程的 PostgreSQL 连接数上限")
    statement_timeout: Duration = Field(
        timedelta(seconds=30),
        gt=timedelta(0),
        description="单条语句的时限",
    )
    pgbouncer: bool = Field(
        default=False, description="经 PgBouncer 的事务模式连接：不依赖会话，会话级时限改由角色设置"
    )

    @model_validator(mode="before")
    @classmethod
    def _put_password_into_dsn(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not data.get("password") or not data.get("dsn"):
            return data
        scheme, _, rest = str(data["dsn"]).partition("://")
        authority, slash, path = rest.partition("/")
        user, at, hosts = authority.rpartition("@")
        if ":" in user:
            raise ValueError("JUNHONG_POSTGRES_DSN 中已有密码，不能再设置 JUNHONG_POSTGRES_PASSWORD")
        login = f"{user}:{quote(str(data['password']), safe='')}@"
        return {**data, "dsn": f"{scheme}://{login}{hosts if at else authority}{slash}{path}"}


class StorageSettings(BaseModel):
    """Where files are kept, if anywhere."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True)

    url: Annotated[SecretStr, AfterValidator(UrlShape("file", "s3", "memory"))] | None = Field(
        None,
        description="对象存储地址，例如 file:///var/lib/junhong/storage 或 s3://桶/前缀；不设则不处理导入任务",
    )


class CredentialSettings(BaseModel):
    """A signing key of one carrier account group."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key_id: str = Field(min_length=1)
    secret: SecretStr = Field(min_length=1)


class GatewaySettings(BaseModel):
    """Where the carrier gateway is, if anywhere, and how to sign requests to it."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True)

    url: Annotated[SecretStr, AfterValidator(UrlShape("https", "http"))] | None = Field(
        None,
        description="运营商网关地址；不设则不轮询",
    )
    key_id: str | None = Field(None, description="签名密钥编号")
    secret: SecretStr | None = Field(None, description="签名密钥")
    credentials: Annotated[dict[str, CredentialSettings], BeforeValidator(parse_json)] = Field(
        {},
        description='按 credential_ref 分的密钥，JSON：{"ref":{"key_id":"…","secret":"…"}}',
        json_schema_extra={"secret": True},
    )
    allow_http: bool = Field(default=False, description="允许明文 http（仅限内网或演示）")
    allowed_hosts: TextList = Field((), description="允许访问的网关主机，逗号分隔；空为只限网关自身")
    connect_timeout: Duration = Field(timedelta(seconds=3), gt=timedelta(0), description="网关连接时限")
    read_timeout: Duration = Field(timedelta(seconds=8), gt=timedelta(0), description="网关读取时限")
    total_timeout: Duration = Field(timedelta(seconds=12), gt=timedelta(0), description="网关请求的总时限")

    @model_validator(mode="after")
    def _check_together(self) -> "GatewaySettings":
        if self.url is None:
            return self
        faults = []
        if self.url.get_secret_value().startswith("http://") and not self.allow_http:
            faults.append("JUNHONG_GATEWAY_URL 为明文 http：须用 https，或设 JUNHONG_GATEWAY_ALLOW_HTTP=true")
        if (self.key_id is None) != (self.secret is None):
            faults.append("JUNHONG_GATEWAY_KEY_ID 与 JUNHONG_GATEWAY_SECRET 须同时设置")
        if faults:
            raise ValueError("；".join(faults))
        return self
