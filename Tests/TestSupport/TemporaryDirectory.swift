package import Foundation
import Synchronization
package import SystemIO

/// A new directory below the system's temporary one, removed with its contents when this value is
/// released, whatever their names, depths and modes.
///
/// Kept if `SANDBOXCTL_KEEP_TEMPORARY` is set: then its path is printed.
package final class TemporaryDirectory: Sendable {
  /// The absolute path.
  package let path: ByteString
  /// The open directory.
  package let directory: Directory
  private let parent: Directory
  private let name: ByteString

  /// Creates the directory; `label` becomes a part of its name. With `inMemory` it is in a file
  /// system without a disk, if there is one, for tests that sync thousands of times. Otherwise it
  /// is on a disk, where times show changes, even if the system's temporary directory is in memory.
  package init(_ label: String = "test", inMemory: Bool = false) throws {
    let memory: ByteString = "/dev/shm"
    let hasMemory = inMemory && (try? Directory.open(path: memory)) != nil
    let above = hasMemory ? memory : Host.environment("TMPDIR") ?? Self.onDisk
    name = ByteString("sandboxctl-\(label)-\(Host.randomHex(bytes: 6))")
    path = try Host.realPath(above).appending(name)
    parent = try Directory.open(path: above)
    directory = try parent.makeDirectory(name, permissions: 0o755)
  }

  private static let onDisk: ByteString =
    (try? Directory.open(path: "/tmp").volumeTimes()) == .loose ? "/var/tmp" : "/tmp"

  deinit { remove() }

  private func remove() {
    if Host.environment("SANDBOXCTL_KEEP_TEMPORARY") != nil {
      print("kept: \(path)")
      return
    }
    do {
      try parent.removeTree(name)
    } catch {
      // A fixture may release its directory before the mount in it.
      if Mount.endAll(below: path) { return remove() }
      print("warning: a temporary directory stays: \(error)")
    }
  }

  private static let shared = Mutex<[TemporaryDirectory]>([])

  /// Creates a directory that several tests use, which is removed when the process ends.
  package static func shared(
    _ label: String, inMemory: Bool = false
  ) throws -> TemporaryDirectory {
    let made = try TemporaryDirectory(label, inMemory: inMemory)
    shared.withLock { all in
      // A value of a static property is never released.
      if all.isEmpty { atexit { TemporaryDirectory.removeShared() } }
      all.append(made)
    }
    return made
  }

  private static func removeShared() {
    shared.withLock { all in for directory in all { directory.remove() } }
  }

  /// Copies an entry of another directory here with all its metadata, under a path here.
  package func copy(
    _ name: String, of other: TemporaryDirectory, to path: String
  ) throws {
    let words = ["-a", "--reflink=auto", other.string + "/" + name, path]
    let outcome = try Program.run("cp", words, in: url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  /// The path as a string.
  package var string: String { String(decoding: path.bytes, as: UTF8.self) }

  /// The path as a URL.
  package var url: URL { URL(fileURLWithPath: string, isDirectory: true) }

  /// The absolute path of an entry in the directory.
  package func path(_ relative: ByteString) -> ByteString { path.appending(relative) }

  /// Writes a file at a relative path, and creates missing parent directories.
  package func write(_ bytes: [UInt8], at relative: ByteString) throws {
    guard let name = relative.lastComponent else {
      throw SystemError(.create, relative, number: EINVAL)
    }
    let above = relative.components.dropLast().reduce(path) { $0.appending($1) }
    let file = try Directory.make(path: above).openOrCreate(name)
    try file.truncate(to: 0)
    try file.write(bytes)
  }

  /// Writes a text file at a relative path, and creates missing parent directories.
  package func write(_ text: String, at relative: ByteString) throws {
    try write(Array(text.utf8), at: relative)
  }

  /// The complete content of the file at a relative path.
  package func read(_ relative: ByteString) throws -> [UInt8] {
    try Descriptor.open(path: path(relative)).readAll(limit: 1 << 30) ?? []
  }
}
