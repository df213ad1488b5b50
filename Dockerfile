# Two stages: pip, the exporter and its torch stay in the first. The encoder's graph is exported here, so that
# nothing is exported, downloaded or written when the image runs.
ARG PYTHON_IMAGE=python:3.12-slim-bookworm

FROM ${PYTHON_IMAGE} AS build

# pip reads PIP_EXTRA_INDEX_URL by itself; PIP_ARGS is added to its command line. Give one of them torch's CPU
# wheels, or the build downloads several GB of CUDA libraries only to throw them away.
ARG PIP_EXTRA_INDEX_URL
ARG PIP_ARGS=""
# Set it to 1 to keep torch, for ENGRAM_EMBEDDING_RUNTIME=torch and for exporting encoders of your own.
ARG KEEP_TORCH=""

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PATH=/opt/engram/bin:$PATH

SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN python -m venv /opt/engram
WORKDIR /src
# The dependencies first, held to their hashes: a layer that changes of the code leave alone. Torch is the exception,
# as its CPU wheel comes from another index and so has another hash; only its version is held.
COPY requirements.lock ./
RUN pip install ${PIP_ARGS} torch==2.13.0 \
    && pip install ${PIP_ARGS} --no-deps --require-hashes --requirement requirements.lock
COPY pyproject.toml LICENSE README.md ./
COPY app app
COPY migrations migrations
RUN pip install ${PIP_ARGS} --no-deps --no-build-isolation .

WORKDIR /
RUN python -c "from pathlib import Path; from app.providers.embedder import load_embedder; \
load_embedder('all-MiniLM-L6-v2', 'onnx', Path('/opt/engram/data'), 0, 1).embed(['The graph works.'])"
RUN test -n "${KEEP_TORCH}" || pip freeze \
    | sed -n 's/^\(torch\|triton\|nvidia-[a-z0-9-]*\|cuda-[a-z0-9-]*\)[ =@].*/\1/p' \
    | xargs --no-run-if-empty pip uninstall --yes --quiet


FROM ${PYTHON_IMAGE}

COPY --from=build /opt/engram /opt/engram
RUN groupadd --system --gid 10001 engram \
    && useradd --system --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin engram
USER 10001:10001
WORKDIR /tmp

ENV PATH=/opt/engram/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ENGRAM_DATA_DIR=/opt/engram/data \
    ENGRAM_HOST=0.0.0.0 \
    ENGRAM_PORT=8000 \
    ENGRAM_LOG_FORMAT=json

EXPOSE 8000 9464
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import httpx, os; httpx.get('http://127.0.0.1:' + os.environ['ENGRAM_PORT'] + '/healthz', timeout=3, trust_env=False).raise_for_status()"]

ENTRYPOINT ["engram"]
CMD ["serve"]
