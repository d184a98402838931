import ArchiveStore
import SystemIO
import TestSupport

/// A storage in which one object has other bytes than were written, or is missing.
struct DamagedStorage: Storage {
  let inner: MemoryStorage
  let object: ObjectPath
  /// The bytes of the object, or nil if it is missing.
  let bytes: [UInt8]?

  var location: String { inner.location }
  var canRename: Bool { inner.canRename }

  private func damaged(_ path: ObjectPath) throws(StoreError) -> [UInt8]? {
    guard path == object else { return nil }
    if let bytes { return bytes }
    throw StoreError(.missing, "read", subject: path.description, reason: "it was removed")
  }

  func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    if let bytes = try damaged(path) { return bytes }
    return try inner.load(path, limit: limit)
  }

  func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    guard let bytes = try damaged(path) else {
      return try inner.load(path, offset: offset, count: count, into: &buffer)
    }
    guard offset + UInt64(count) <= UInt64(bytes.count) else {
      throw StoreError(.damaged, "read", subject: path.description, reason: "it ends before")
    }
    buffer = Array(bytes[Int(offset)..<(Int(offset) + count)])
  }

  func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
    let names = try inner.list(directory)
    return bytes == nil && directory == object.directory
      ? names.filter { $0 != object.name } : names
  }

  func forEachObject(
    below directory: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    try inner.forEachObject(below: directory) { path, status throws(StoreError) in
      guard let status = path == object ? try self.status(path) : status else { return }
      try body(path, status)
    }
  }

  func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    guard path == object else { return try inner.status(path) }
    return bytes.map {
      ObjectStatus(isDirectory: false, size: UInt64($0.count), modified: Timestamp(seconds: 0))
    }
  }

  func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter {
    try inner.startObject(in: directory)
  }

  func makeDirectories(_ names: [ByteString], in directory: ObjectPath) throws(StoreError) {
    try inner.makeDirectories(names, in: directory)
  }

  func touch(_ path: ObjectPath) throws(StoreError) { try inner.touch(path) }

  func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    try inner.rename(path, to: target)
  }

  func remove(_ path: ObjectPath) throws(StoreError) { try inner.remove(path) }
}

extension Storage {
  /// All objects, sorted by path.
  func objects(below directory: ObjectPath = .root) throws(StoreError) -> [ObjectPath] {
    var found: [ObjectPath] = []
    for name in try list(directory) {
      let path = directory.appending(name)
      guard let status = try status(path) else { continue }
      if status.isDirectory { found += try objects(below: path) } else { found.append(path) }
    }
    return found
  }
}
