import Glibc
package import SystemIO

/// The part of a file that is in the page cache.
package enum PageCache {
  /// The number of a file's pages in memory, and the number of all its pages (mincore(2)).
  package static func pages(of path: ByteString) throws -> (present: Int, all: Int) {
    let file = try Opened(path)
    let size = try file.size()
    guard size > 0 else { return (0, 0) }
    let location = unsafe mmap(nil, size, PROT_READ, MAP_SHARED, file.number, 0)
    guard unsafe location != MAP_FAILED, let location = unsafe location else {
      throw Opened.failure(path)
    }
    defer { _ = unsafe munmap(location, size) }
    let page = Int(getpagesize())
    var present = [UInt8](repeating: 0, count: (size + page - 1) / page)
    guard unsafe mincore(location, size, &present) == 0 else { throw Opened.failure(path) }
    return (present.count { $0 & 1 == 1 }, present.count)
  }

  /// A way to write a file to the disk.
  package enum Way {
    /// The whole file (fsync(2)).
    case file
    /// A range of it (sync_file_range(2)), which overlayfs ignores.
    case range
  }

  /// Whether the volume of a directory drops pages that are on the disk: a file system in memory
  /// cannot, and one with its own cache does not report them.
  package static func canBeEmptied(in directory: TemporaryDirectory, by way: Way = .file) throws
    -> Bool
  {
    let name: ByteString = "page-cache"
    let path = directory.path(name)
    try directory.write([UInt8](repeating: 1, count: 1 << 20), at: name)
    defer { try? directory.directory.remove(name) }
    guard let before = try? pages(of: path), before.present == before.all else { return false }
    let file = try Opened(path)
    if way == .range, try isOverlay(directory) { return false }
    guard fsync(file.number) == 0 else { throw Opened.failure(path) }
    _ = posix_fadvise(file.number, 0, 0, POSIX_FADV_DONTNEED)
    return try pages(of: path).present == 0
  }

  private static func isOverlay(_ directory: TemporaryDirectory) throws -> Bool {
    try Program.run("stat", ["-f", "-c", "%T", directory.string]).output.hasPrefix("overlay")
  }
}

/// A file opened without the code under test.
private struct Opened: ~Copyable {
  let number: Int32
  private let path: ByteString

  init(_ path: ByteString) throws {
    self.path = path
    number = unsafe open(path.description, O_RDONLY)
    guard number >= 0 else { throw Self.failure(path) }
  }

  deinit { _ = close(number) }

  func size() throws -> Int {
    var status = stat()
    guard unsafe fstat(number, &status) == 0 else { throw Self.failure(path) }
    return Int(status.st_size)
  }

  static func failure(_ path: ByteString) -> SystemError {
    SystemError(.read, path, number: errno)
  }
}
