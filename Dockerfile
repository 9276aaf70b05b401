# A service of ilhash. Both stages install nothing that is not locked with its hash.
#
#   docker build --tag ilhash .
#   docker run --rm --publish 127.0.0.1:8080:8080 --read-only --tmpfs /tmp --volume ilhash:/data ilhash
FROM python:3.13.9-slim-bookworm AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY requirements-build.lock requirements-serve.lock ./
RUN python -m pip install --no-cache-dir --require-hashes --requirement requirements-build.lock \
 && python -m venv /opt/ilhash \
 && /opt/ilhash/bin/python -m pip install --no-cache-dir --only-binary :all: --require-hashes \
      --requirement requirements-serve.lock
COPY CMakeLists.txt LICENSE README.md pyproject.toml ./
COPY src src
RUN python -m pip wheel --no-build-isolation --no-deps --wheel-dir /build/wheels . \
 && /opt/ilhash/bin/python -m pip install --no-cache-dir --no-deps /build/wheels/*.whl \
 && /opt/ilhash/bin/python -m pip uninstall --yes pip

FROM python:3.13.9-slim-bookworm
# One user without a name elsewhere, who may write to /data and nothing else.
RUN groupadd --system --gid 10001 ilhash \
 && useradd --system --uid 10001 --gid ilhash --home-dir /data --shell /usr/sbin/nologin ilhash \
 && install --directory --owner ilhash --group ilhash /data
COPY --from=build /opt/ilhash /opt/ilhash
COPY --chmod=0755 tools/container-entrypoint /usr/local/bin/container-entrypoint
ENV PATH=/opt/ilhash/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["python", "-c", \
  "import urllib.request as http; http.urlopen('http://127.0.0.1:8080/readyz', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["container-entrypoint"]
CMD ["serve", "/data/service", "--host", "0.0.0.0", "--port", "8080"]
