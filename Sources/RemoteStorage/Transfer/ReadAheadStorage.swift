package import ArchiveStore
internal import Codecs
internal import Synchronization
package import SystemIO

/// A storage that reads more of a pack than requested, once the pack is read a second time, so that
/// adjacent frames cost one request.
///
/// Trees are stored before those that refer to them, and are therefore read from the end of their
/// packs to the beginning; data is read from the beginning to the end. So the additional bytes are
/// before or after the requested range, in the direction from the last request to this one. Only
/// ranges of packs are read ahead, because everything else is read completely.
package final class ReadAheadStorage: ForwardingStorage {
  package let base: any Storage
  private let state = Mutex(State())
  private let expected = Mutex<ExpectedRanges?>(nil)
  private let listings = Mutex<ListingsAhead?>(nil)
  /// The number of threads that fetch what is expected, and of requests at the same time.
  private let threads: Int

  /// The first and the largest window in bytes.
  private static let windows = 2 << 20...4 << 20
  /// The bytes that are kept, and the number of packs whose last reads are known.
  private static let capacity = 32 << 20
  private static let knownPacks = 4096
  /// The largest number of connections that are opened ahead.
  private static let connectedAhead = 8

  /// Wraps a storage.
  ///
  /// - Parameter connections: the number of ranges that are fetched ahead at once.
  package init(_ base: any Storage, connections: Int = 1) {
    (self.base, threads) = (base, max(1, connections))
  }

  package var concurrency: Int { threads }

  private struct State {
    var positions: [ObjectPath: Position] = [:]
    /// The ranges that were read ahead, the last used one at the end.
    var blocks: [Block] = []

    /// Returns the block that contains a range.
    mutating func block(of path: ObjectPath, _ range: Range<UInt64>) -> Block? {
      let found = blocks.lastIndex { block in
        block.path == path && block.range.lowerBound <= range.lowerBound
          && block.range.upperBound >= range.upperBound
      }
      guard let found else { return nil }
      let block = blocks.remove(at: found)
      blocks.append(block)
      return block
    }

    mutating func keep(_ block: Block) {
      blocks.append(block)
      var size = blocks.reduce(0) { $0 + $1.bytes.count }
      while size > ReadAheadStorage.capacity, !blocks.isEmpty {
        size -= blocks.removeFirst().bytes.count
      }
    }
  }

  /// The last read of a pack.
  private struct Position {
    var offset: UInt64
    var window: UInt64
    /// The size of the pack, once requested.
    var size: UInt64?
  }

  private struct Block {
    let path: ObjectPath
    let offset: UInt64
    let bytes: [UInt8]

    var range: Range<UInt64> { offset..<(offset + UInt64(bytes.count)) }
  }

  package func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    let range = offset..<(offset + UInt64(count))
    if let expected = expected.withLock({ $0 }),
      try expected.take(ObjectRange(path: path, range: range), into: &buffer)
    {
      return
    }
    if let block = state.withLock({ $0.block(of: path, range) }) {
      let start = Int(offset - block.offset)
      buffer.removeAll(keepingCapacity: true)
      buffer += block.bytes[start..<(start + count)]
      state.withLock { state in
        if let last = state.positions[path] {
          state.positions[path] = Position(offset: offset, window: last.window, size: last.size)
        }
      }
      return
    }
    guard let wider = try widened(range, of: path),
      let bytes = try bytes(of: path, wider)
    else { return try base.load(path, offset: offset, count: count, into: &buffer) }
    let start = Int(offset - wider.lowerBound)
    buffer.removeAll(keepingCapacity: true)
    buffer += bytes[start..<(start + count)]
    state.withLock { $0.keep(Block(path: path, offset: wider.lowerBound, bytes: bytes)) }
  }

  /// Returns the bytes of a wider range; nil if the pack does not have all of them.
  private func bytes(
    of path: ObjectPath, _ range: Range<UInt64>
  ) throws(StoreError) -> [UInt8]? {
    do throws(StoreError) {
      return try base.load(path, offset: range.lowerBound, count: range.count)
    } catch {
      guard error.kind == .damaged else { throw error }
      return nil
    }
  }

  /// Returns a wider range to read instead, or nil to read no more than requested.
  private func widened(
    _ range: Range<UInt64>, of path: ObjectPath
  ) throws(StoreError) -> Range<UInt64>? {
    guard path.components.first == "packs" else { return nil }
    let last = state.withLock { state in
      let last = state.positions[path]
      if last == nil {
        if state.positions.count >= Self.knownPacks { state.positions = [:] }
        state.positions[path] = Position(
          offset: range.lowerBound, window: UInt64(Self.windows.lowerBound))
      }
      return last
    }
    guard var last, range.count < last.window else { return nil }
    let (window, isBehind) = (last.window, range.lowerBound < last.offset)
    // Bytes before the range exist if the range does.
    if !isBehind, last.size == nil { last.size = try base.status(path)?.size ?? 0 }
    let next = Position(
      offset: range.lowerBound, window: min(window * 2, UInt64(Self.windows.upperBound)),
      size: last.size)
    state.withLock { $0.positions[path] = next }
    if isBehind {
      let start = range.upperBound - min(window, range.upperBound)
      // At the beginning of a pack, up to the range that was read last.
      return start..<max(range.upperBound, min(start + window, last.offset))
    }
    let size = last.size ?? 0
    guard range.upperBound <= size else { return nil }
    return range.lowerBound..<min(range.lowerBound + window, size)
  }

  /// Lists directories ahead, all at once: those that a command lists first if it takes no lease.
  ///
  /// - Parameter connects: whether all connections to a store of objects are opened at the same
  ///   time, for a command that soon needs them.
  package func listAhead(_ directories: [ObjectPath], connects: Bool = false) {
    // The command itself uses one. Over SFTP all requests share one.
    let others = min(threads, Self.connectedAhead) - 1 - directories.count
    let ahead = ListingsAhead(
      directories, of: base, connecting: connects && !canRename ? max(0, others) : 0)
    listings.withLock { $0 = ahead }
  }

  private func listed(
    _ directory: ObjectPath
  ) throws(StoreError) -> [(path: ObjectPath, status: ObjectStatus)]? {
    try listings.withLock { $0 }?.take(directory)
  }

  /// Drops the listings, before a change.
  private func change() { listings.withLock { $0 }?.drop() }

  /// Forgets what was read from an object, or from everything below a directory, before a change.
  private func forget(_ path: ObjectPath) {
    change()
    forgetBlocks(path)
  }

  private func forgetBlocks(_ path: ObjectPath) {
    state.withLock { state in
      state.blocks.removeAll { $0.path.components.starts(with: path.components) }
      state.positions = state.positions.filter {
        !$0.key.components.starts(with: path.components)
      }
    }
  }
}

// MARK: - Other calls

extension ReadAheadStorage {
  /// The warnings of the storage about what a crash can cost, each in one sentence.
  package var warnings: [String] { (base as? TransferStorage)?.warnings ?? [] }

  package func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
    guard let found = try listed(directory) else { return try base.list(directory) }
    let depth = directory.components.count
    return Set(found.compactMap { $0.path.components.dropFirst(depth).first }).sorted()
  }

  package func forEachObject(
    below directory: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    guard let found = try listed(directory) else {
      return try base.forEachObject(below: directory, body)
    }
    for (path, status) in found { try body(path, status) }
  }

  package func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter {
    change()
    return try base.startObject(in: directory)
  }

  package func makeDirectories(
    _ names: [ByteString], in directory: ObjectPath
  ) throws(StoreError) {
    change()
    try base.makeDirectories(names, in: directory)
  }

  package func touch(_ path: ObjectPath) throws(StoreError) {
    change()
    try base.touch(path)
  }

  package func touch(_ paths: [ObjectPath]) throws(StoreError) {
    change()
    try base.touch(paths)
  }

  /// Fetches ranges ahead, several at once.
  package func expect(_ ranges: [ObjectRange]) {
    let fetch = ranges.isEmpty ? nil : ExpectedRanges(ranges, from: base, threads: threads)
    let old = expected.withLock { expected in
      defer { expected = fetch }
      return expected
    }
    old?.end()
  }

  package func forgetReads(of path: ObjectPath) {
    expected.withLock { $0 }?.forget(path)
    forgetBlocks(path)
  }

  package func create(_ bytes: [UInt8], as path: ObjectPath) throws(StoreError) -> Bool {
    change()
    return try base.create(bytes, as: path)
  }

  package func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    forget(path)
    forget(target)
    try base.rename(path, to: target)
  }

  package func moveAside(_ moves: [ObjectMove]) throws(StoreError) -> Bool {
    for move in moves { forget(move.path) }
    return try base.moveAside(moves)
  }

  package func remove(_ path: ObjectPath) throws(StoreError) {
    forget(path)
    try base.remove(path)
  }

  package func remove(_ paths: [ObjectPath]) throws(StoreError) {
    for path in paths { forget(path) }
    try base.remove(paths)
  }
}
