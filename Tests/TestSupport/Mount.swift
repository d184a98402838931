import Foundation
public import SystemIO

/// A file system mounted for a test, and unmounted when this value goes out of use. Needs
/// privileges: ask `isPermitted()` first.
public final class Mount: Sendable {
  private let path: String

  /// Mounts a new empty file system in memory on a new folder `name` of `folder`, whose path is
  /// `path`.
  public convenience init(
    on folder: borrowing Folder, at path: ByteString, _ name: ByteString
  ) throws {
    try folder.createFolder(name)
    try self.init(["-t", "tmpfs", "-o", "size=16m", "tmpfs"], on: path.appending(name))
  }

  /// Mounts `source` on what is at `target`: a file on a file or a folder on a folder.
  public convenience init(binding source: ByteString, on target: ByteString) throws {
    try self.init(["--bind", String(decoding: source.bytes, as: UTF8.self)], on: target)
  }

  /// Mounts the folders `lower` and `upper` of `folder`, one over the other, on its `merged`; its
  /// `work` is the file system's own.
  public convenience init(overlayBelow folder: ByteString) throws {
    let path = String(decoding: folder.bytes, as: UTF8.self)
    let options = "lowerdir=\(path)/lower,upperdir=\(path)/upper,workdir=\(path)/work"
    try self.init(["-t", "overlay", "-o", options, "overlay"], on: folder.appending("merged"))
  }

  private init(_ arguments: [String], on target: ByteString) throws {
    path = String(decoding: target.bytes, as: UTF8.self)
    let outcome = try Program.run("mount", arguments + [path])
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  deinit { _ = try? Program.run("umount", ["-l", path]) }

  /// Whether this process may mount; says that the test is skipped where not.
  public static func isPermitted() throws -> Bool {
    let scratch = try TemporaryFolder("mount")
    do {
      _ = try Mount(on: scratch.folder, at: scratch.path, "m")
      return true
    } catch {
      print("skipped: mounting is not permitted: \(error)")
      return false
    }
  }
}
