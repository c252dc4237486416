#!/bin/sh
# Lays out in FOLDER what a container has in /opt/deltafold: the package as npm would publish it, its
# dependencies as package-lock.json has them, and the Node that runs this: sh package.sh FOLDER. Expects a
# clone that is built.
set -eu
folder=$1
root=$(cd "$(dirname "$0")/../.." && pwd)

mkdir -p "$folder"
cd "$root"
packed=$(npm pack --ignore-scripts --silent --pack-destination "$folder")
tar -xzf "$folder/$packed" -C "$folder" --strip-components=1
rm "$folder/$packed"
cp package-lock.json "$folder"
cp "$(node --print process.execPath)" deploy/container/ready.js "$folder/bin/"
cd "$folder"
npm ci --omit=dev --ignore-scripts --no-audit --no-fund --silent
# Dawn comes for every platform at once: 132 MB, of which this one has 22.
platform=$(node --print 'process.platform + "-" + process.arch')
find node_modules/webgpu/dist -mindepth 1 -maxdepth 1 ! -name "$platform" -exec rm -r {} +
