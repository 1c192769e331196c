# A server of dpsql: not root, the data and the code read-only, one folder that is written to.
# docs/server.md says how it is run; its steps are those of tests/remote/test_installed.py.
FROM python:3.12-slim AS build
COPY pyproject.toml README.md LICENSE /src/
COPY dpsql /src/dpsql
RUN python -m venv /opt/dpsql && /opt/dpsql/bin/pip install --no-cache-dir "/src[server]"

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /ledger --shell /usr/sbin/nologin dpsql \
    && install -d -o dpsql -g dpsql -m 0700 /ledger && install -d -m 0755 /data
COPY --from=build /opt/dpsql /opt/dpsql
ENV PATH=/opt/dpsql/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 MPLCONFIGDIR=/tmp/matplotlib
USER dpsql
WORKDIR /data
# /data: the owner's file, with ledger = "/ledger/shop.ledger" in [budget], and the files of its tables; mounted read-only.
# /ledger: a volume, with ledger, hashes of tokens and key of anchors.
# /tls: cert.pem and key.pem, mounted read-only; the key readable by user 10001.
VOLUME ["/ledger"]
EXPOSE 8443
ENTRYPOINT ["dpsql"]
CMD ["serve", "shop.toml", "--host", "0.0.0.0", "--tls-cert", "/tls/cert.pem", "--tls-key", "/tls/key.pem"]
