public import SystemIO

/// A storage that passes each call on to another one, except those that it handles itself.
public protocol ForwardingStorage: Storage {
  /// The other storage.
  var base: any Storage { get }
}

extension ForwardingStorage {
  public var location: String { base.location }

  public var canRename: Bool { base.canRename }

  public var canCreateExclusively: Bool { base.canCreateExclusively }

  public var concurrency: Int { base.concurrency }

  public var versions: (any ObjectVersions)? { base.versions }

  public func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    try base.load(path, limit: limit)
  }

  public func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    try base.load(path, offset: offset, count: count, into: &buffer)
  }

  public func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
    try base.list(directory)
  }

  public func listAll(_ directories: [ObjectPath]) throws(StoreError) -> [DirectoryListing?] {
    try base.listAll(directories)
  }

  public func forEachObject(
    below directory: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    try base.forEachObject(below: directory, body)
  }

  public func forEachObject(
    belowAny directories: [ObjectPath],
    _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    try base.forEachObject(belowAny: directories, body)
  }

  public func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    try base.status(path)
  }

  public func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter {
    try base.startObject(in: directory)
  }

  public func makeDirectories(
    _ names: [ByteString], in directory: ObjectPath
  ) throws(StoreError) {
    try base.makeDirectories(names, in: directory)
  }

  public func touch(_ path: ObjectPath) throws(StoreError) { try base.touch(path) }

  public func touch(_ paths: [ObjectPath]) throws(StoreError) { try base.touch(paths) }

  public func create(_ bytes: [UInt8], as path: ObjectPath) throws(StoreError) -> Bool {
    try base.create(bytes, as: path)
  }

  public func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    try base.rename(path, to: target)
  }

  public func moveAside(_ moves: [ObjectMove]) throws(StoreError) -> Bool {
    try base.moveAside(moves)
  }

  public func remove(_ path: ObjectPath) throws(StoreError) { try base.remove(path) }

  public func remove(_ paths: [ObjectPath]) throws(StoreError) { try base.remove(paths) }

  public func space() throws(StoreError) -> VolumeSpace? { try base.space() }

  public func directoryIdentity() throws(StoreError) -> FileIdentity? {
    try base.directoryIdentity()
  }

  public func expect(_ ranges: [ObjectRange]) { base.expect(ranges) }

  public func forgetReads(of path: ObjectPath) { base.forgetReads(of: path) }
}
