import Foundation
package import SystemIO

/// A file system mounted for a test, and unmounted when this value is released. Needs privileges:
/// check `isPermitted()` first.
package final class Mount: Sendable {
  private let path: String

  /// Mounts a new empty file system in memory on a new directory `name` in `directory`, whose path
  /// is `path`.
  package convenience init(
    on directory: borrowing Directory, at path: ByteString, _ name: ByteString
  ) throws {
    try directory.createDirectory(name)
    try self.init(["-t", "tmpfs", "-o", "size=16m", "tmpfs"], on: path.appending(name))
  }

  /// Mounts a new empty file system in memory on the directory `target`, with options of mount(8).
  package convenience init(inMemory options: String, on target: ByteString) throws {
    try self.init(["-t", "tmpfs", "-o", options, "tmpfs"], on: target)
  }

  /// Mounts a new file system of a kind without a device or options, such as `ramfs`.
  package convenience init(new kind: String, on target: ByteString) throws {
    try self.init(["-t", kind, kind], on: target)
  }

  /// Mounts `source` on `target`: a file on a file or a directory on a directory.
  package convenience init(binding source: ByteString, on target: ByteString) throws {
    try self.init(["--bind", String(decoding: source.bytes, as: UTF8.self)], on: target)
  }

  /// Mounts a new file system of a kind, `ext3`, `ext4`, `xfs` or `btrfs`, from an image of
  /// `mebibytes` MiB in `directory`, on a new directory `name` in it. The image of `ext3` has small
  /// inodes, which record whole seconds.
  package convenience init(
    new kind: String, mebibytes: UInt64, in directory: TemporaryDirectory, _ name: ByteString
  ) throws {
    try directory.directory.createDirectory(name)
    try directory.directory.create("image").truncate(to: mebibytes << 20)
    let image = directory.string + "/image"
    let options = ["ext3": ["-F", "-I", "128"], "ext4": ["-F"]][kind] ?? []
    let made = try Program.run("mkfs.\(kind)", ["-q"] + options + [image])
    guard made.code == 0 else { throw Program.Failure(description: made.errors) }
    try self.init(["-o", "loop", image], on: directory.path(name))
  }

  /// Mounts an overlay of the directories `lower` and `upper` below `directory` on its `merged`;
  /// `work` is for the file system itself. It cannot rename directories of `lower`.
  package convenience init(overlayBelow directory: ByteString) throws {
    let path = String(decoding: directory.bytes, as: UTF8.self)
    let layers = "lowerdir=\(path)/lower,upperdir=\(path)/upper,workdir=\(path)/work"
    let options = layers + ",redirect_dir=off"
    try self.init(["-t", "overlay", "-o", options, "overlay"], on: directory.appending("merged"))
  }

  /// Mounts a squashfs image of `source` with additional entries, as options `-p` of mksquashfs(1),
  /// on a new directory `name` in `directory`.
  package convenience init(
    squashed source: String, with entries: [String], in directory: TemporaryDirectory,
    _ name: ByteString
  ) throws {
    try directory.directory.createDirectory(name)
    let image = directory.string + "/squashed"
    let words = [source, image, "-quiet", "-no-progress"] + entries.flatMap { ["-p", $0] }
    let made = try Program.run("mksquashfs", words)
    guard made.code == 0 else { throw Program.Failure(description: made.errors) }
    try self.init(["-t", "squashfs", "-o", "loop", image], on: directory.path(name))
  }

  private init(_ arguments: [String], on target: ByteString) throws {
    path = String(decoding: target.bytes, as: UTF8.self)
    let outcome = try Program.run("mount", arguments + [path])
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  deinit { _ = try? Program.run("umount", ["-l", path]) }

  /// Unmounts all mounts below a directory, the last one first. Returns whether there were any and
  /// all of them are unmounted.
  package static func endAll(below path: ByteString) -> Bool {
    let prefix = String(decoding: path.bytes, as: UTF8.self) + "/"
    let table = (try? String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8)) ?? ""
    // The fifth field is the mount point (proc_pid_mountinfo(5)).
    let found = table.split(separator: "\n").map { unescaped($0.split(separator: " ")[4]) }
      .filter { $0.hasPrefix(prefix) }
    return !found.isEmpty
      && found.reversed().allSatisfy { (try? Program.run("umount", ["-l", $0]).code) == 0 }
  }

  /// A path in mountinfo, in which a space, a tab, a newline and a backslash are written in octal.
  private static func unescaped(_ field: Substring) -> String {
    [("040", " "), ("011", "\t"), ("012", "\n"), ("134", "\\")].reduce(String(field)) {
      $0.replacingOccurrences(of: "\\" + $1.0, with: $1.1)
    }
  }

  /// Whether file systems of a kind can be created and mounted from an image; prints that the test
  /// is skipped if not.
  package static func isPermitted(new kind: String) -> Bool {
    do {
      let scratch = try TemporaryDirectory("mount")
      // Kept until the volume is unmounted, because a directory with a mount in it cannot be
      // removed.
      try withExtendedLifetime(scratch) {
        _ = try Mount(new: kind, mebibytes: 310, in: scratch, "m")
      }
      return true
    } catch {
      print("skipped: no \(kind) can be mounted: \(error)")
      return false
    }
  }

  /// Whether this process may mount; prints that the test is skipped if not.
  package static func isPermitted() throws -> Bool {
    let scratch = try TemporaryDirectory("mount")
    do {
      try withExtendedLifetime(scratch) {
        _ = try Mount(on: scratch.directory, at: scratch.path, "m")
      }
      return true
    } catch {
      print("skipped: mounting is not permitted: \(error)")
      return false
    }
  }
}
