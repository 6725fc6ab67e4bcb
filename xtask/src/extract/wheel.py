"""Writes the C headers of a wheel into a folder, reading only those parts of
the file: wheels of libraries are hundreds of megabytes around a few headers.

usage: wheel.py REQUIREMENT FOLDER
"""

import io
import json
import pathlib
import subprocess
import sys
import urllib.request
import zipfile

PLATFORMS = ("1", "2010", "2014", *(f"_2_{minor}" for minor in range(5, 41)))


def url_of(requirement):
    """Asks pip where the wheel for 64-bit Linux lies."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    command += ["--no-deps", "--only-binary=:all:", "--target", "unused", "--report", "-"]
    for platform in PLATFORMS:
        command += ["--platform", f"manylinux{platform}_x86_64"]
    report = subprocess.run([*command, requirement], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(report)["install"][0]["download_info"]["url"]


class Remote(io.RawIOBase):
    """A file on a server, read by ranges."""

    def __init__(self, url):
        self.url = url
        self.place = 0
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD")) as reply:
            self.size = int(reply.headers["Content-Length"])

    def seekable(self):
        return True

    def readable(self):
        return True

    def tell(self):
        return self.place

    def seek(self, offset, whence=io.SEEK_SET):
        self.place = offset + (0, self.place, self.size)[whence]
        return self.place

    def readinto(self, buffer):
        end = min(self.place + len(buffer), self.size)
        if end <= self.place:
            return 0
        wanted = {"Range": f"bytes={self.place}-{end - 1}"}
        with urllib.request.urlopen(urllib.request.Request(self.url, headers=wanted)) as reply:
            if reply.status != 206:
                sys.exit(f"{self.url}: the server does not give parts of a file")
            data = reply.read()
        buffer[: len(data)] = data
        self.place += len(data)
        return len(data)


def main():
    requirement, folder = sys.argv[1:]
    with zipfile.ZipFile(io.BufferedReader(Remote(url_of(requirement)), 1 << 20)) as wheel:
        for name in wheel.namelist():
            if name.endswith((".h", ".hpp", ".cuh")):
                wheel.extract(name, pathlib.Path(folder))


main()
