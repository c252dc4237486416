#!/bin/sh
# The system around /opt/deltafold in a container: run as root in a bare Debian 12. The Dockerfile runs it, and
# so does scripts/container-root.ts, in a root that debootstrap made.
set -eu
export DEBIAN_FRONTEND=noninteractive

# libstdc++6 is Node's. libxext6 is what NVIDIA's Vulkan driver wants beside the loader; the driver itself
# comes from the host. tini passes SIGTERM on: a first process without a handler, as Node is while it
# loads, would not hear it.
apt-get update --quiet
apt-get install --yes --quiet --no-install-recommends \
  ca-certificates libstdc++6 libvulkan1 libxext6 tini
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin

groupadd --gid 10001 deltafold
useradd --uid 10001 --gid deltafold --home-dir /var/lib/deltafold --shell /usr/sbin/nologin deltafold
# All that a running server writes: models, and what it caches. A volume's first content is this folder.
install --directory --owner=deltafold --group=deltafold --mode=0750 /var/lib/deltafold

ln -s /opt/deltafold/bin/node /usr/local/bin/node
ln -s /opt/deltafold/bin/deltafold.js /usr/local/bin/deltafold
