import Codecs
import Synchronization
import SystemIO

@testable import ArchiveStore

/// A storage whose calls fail when a test says so.
final class FailingStorage: Storage {
  private let inner: any Storage
  private let calls = Atomic<Int>(0)
  private let fails: @Sendable (_ call: Int) -> Bool

  /// Wraps a storage; `fails` is asked at each call, which are counted from 1.
  init(_ inner: any Storage, fails: @escaping @Sendable (_ call: Int) -> Bool) {
    self.inner = inner
    self.fails = fails
  }

  /// How many calls were made.
  var count: Int { calls.load(ordering: .relaxed) }

  func step(_ what: String) throws(StoreError) {
    let call = calls.add(1, ordering: .relaxed).newValue
    if fails(call) { throw StoreError(.system, "do", what, "the test says so") }
  }

  var place: String { inner.place }
  var canRename: Bool { inner.canRename }

  func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    try step("load \(path)")
    return try inner.load(path, limit: limit)
  }

  func load(_ path: ObjectPath, offset: UInt64, count: Int) throws(StoreError) -> [UInt8] {
    try step("range \(path)")
    return try inner.load(path, offset: offset, count: count)
  }

  func list(_ folder: ObjectPath) throws(StoreError) -> [ByteString] {
    try step("list \(folder)")
    return try inner.list(folder)
  }

  func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    try step("status \(path)")
    return try inner.status(path)
  }

  func startObject(in folder: ObjectPath) throws(StoreError) -> any ObjectWriter {
    try step("start")
    return Writer(try inner.startObject(in: folder), self)
  }

  func makeFolders(_ names: [ByteString], in folder: ObjectPath) throws(StoreError) {
    try step("folders \(folder)")
    try inner.makeFolders(names, in: folder)
  }

  func touch(_ path: ObjectPath) throws(StoreError) {
    try step("touch \(path)")
    try inner.touch(path)
  }

  func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    try step("rename \(target)")
    try inner.rename(path, to: target)
  }

  func remove(_ path: ObjectPath) throws(StoreError) {
    try step("remove \(path)")
    try inner.remove(path)
  }

  private final class Writer: ObjectWriter {
    private let inner: any ObjectWriter
    private let storage: FailingStorage

    init(_ inner: any ObjectWriter, _ storage: FailingStorage) {
      (self.inner, self.storage) = (inner, storage)
    }

    func append(_ bytes: [UInt8]) throws(StoreError) {
      try storage.step("append")
      try inner.append(bytes)
    }

    func commit(as path: ObjectPath, digest: Digest) throws(StoreError) {
      try storage.step("commit \(path)")
      try inner.commit(as: path, digest: digest)
    }

    func discard() { inner.discard() }
  }
}
