internal import CLinux
internal import Glibc
internal import Synchronization

/// An array of trivial values whose memory comes from a `SpillPool`: for tables with a row for each
/// entry of a tree.
///
/// It has value semantics: a copy shares its memory until one of the two is changed.
@safe
public struct SpillableArray<Element: BitwiseCopyable & Sendable>: Sendable {
  @usableFromInline var block: SpillPool.Block?
  @usableFromInline let pool: SpillPool
  @usableFromInline var rows = 0

  /// Creates an empty array.
  @inlinable public init(in pool: SpillPool = .shared) { self.pool = pool }

  /// Creates an array of equal values.
  @inlinable public init(repeating value: Element, count: Int, in pool: SpillPool = .shared) {
    self.init(in: pool)
    reserve(count)
    for row in 0..<count { unsafe base[row] = value }
    rows = count
  }

  /// Creates an array from a collection.
  @inlinable public init(_ elements: some Collection<Element>, in pool: SpillPool = .shared) {
    self.init(in: pool)
    append(contentsOf: elements)
  }

  /// The number of elements that fit without new memory.
  @inlinable var capacity: Int {
    (block?.byteCount ?? 0) / MemoryLayout<Element>.stride
  }

  /// The first element. Requires a block.
  @inlinable var base: UnsafeMutablePointer<Element> {
    unsafe block.unsafelyUnwrapped.start.assumingMemoryBound(to: Element.self)
  }

  /// The minimum size of a block in bytes.
  @inlinable static var least: Int { 1024 }

  /// Moves the elements into a new block with room for at least `wanted`.
  @inline(never)
  @inlinable mutating func move(toRoomFor wanted: Int, isMapped: Bool = false) {
    let larger = pool.allocate(
      Swift.max(wanted * MemoryLayout<Element>.stride, Self.least), isMapped: isMapped)
    if let block {
      unsafe larger.start.copyMemory(
        from: block.start, byteCount: rows * MemoryLayout<Element>.stride)
    }
    block = larger
  }

  /// Reserves room for `wanted` elements in total.
  @inlinable public mutating func reserve(_ wanted: Int) {
    if wanted > capacity || !isKnownUniquelyReferenced(&block) { move(toRoomFor: wanted) }
  }

  /// Moves a short array from the heap to memory that can be spilled: for many short arrays.
  public mutating func makeSpillable() {
    if let block, block.isOfHeap { move(toRoomFor: rows, isMapped: true) }
  }

  /// The size of the elements in bytes.
  @inlinable public var byteCount: Int { rows * MemoryLayout<Element>.stride }

  /// Makes the block unique, with room for more elements.
  @inlinable mutating func makeRoom(for more: Int) {
    if isKnownUniquelyReferenced(&block), rows + more <= capacity { return }
    move(toRoomFor: rows + more <= capacity ? capacity : Swift.max(rows + more, 2 * capacity))
  }

  /// Appends an element.
  @inlinable public mutating func append(_ element: Element) {
    makeRoom(for: 1)
    unsafe base[rows] = element
    rows += 1
  }

  /// Appends the elements of a collection.
  @inlinable public mutating func append(contentsOf elements: some Collection<Element>) {
    let done: Void? = elements.withContiguousStorageIfAvailable { buffer in
      append(unsafe buffer.span)
    }
    if done != nil { return }
    makeRoom(for: elements.count)
    for element in elements {
      unsafe base[rows] = element
      rows += 1
    }
  }

  /// Appends the elements of a span.
  @inlinable public mutating func append(_ elements: Span<Element>) {
    if elements.isEmpty { return }
    makeRoom(for: elements.count)
    unsafe elements.withUnsafeBufferPointer { source in
      guard let first = source.baseAddress else { return }
      unsafe (base + rows).update(from: first, count: source.count)
    }
    rows += elements.count
  }

  /// Removes the last elements.
  @inlinable public mutating func removeLast(_ count: Int) {
    precondition(count >= 0 && count <= rows)
    rows -= count
  }

  /// Returns a copy of some elements as an array, for generic code in other modules, which is
  /// specialized for arrays and slow for a `Slice` of this type.
  @inlinable public func copy(_ range: Range<Int>) -> ArraySlice<Element> {
    precondition(range.lowerBound >= 0 && range.upperBound <= rows, "range out of bounds")
    guard block != nil else { return [] }
    return withExtendedLifetime(block) {
      unsafe Array(UnsafeBufferPointer(start: base + range.lowerBound, count: range.count))[...]
    }
  }

  /// Calls `body` with all elements, which are valid during the call.
  @inlinable public func withSpan<Result, Failure: Error>(
    _ body: (Span<Element>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withExtendedLifetime(block) { () throws(Failure) -> Result in
      let start = unsafe block == nil ? nil : UnsafePointer(base)
      return try unsafe body(UnsafeBufferPointer(start: start, count: rows).span)
    }
  }
}

extension SpillableArray: RandomAccessCollection, MutableCollection {
  public typealias Indices = Range<Int>
  public typealias SubSequence = Slice<SpillableArray>

  @inlinable public var startIndex: Int { 0 }
  @inlinable public var endIndex: Int { rows }
  @inlinable public var count: Int { rows }

  @inlinable public subscript(index: Int) -> Element {
    get {
      precondition(index >= 0 && index < rows, "index out of range")
      return unsafe base[index]
    }
    _modify {
      precondition(index >= 0 && index < rows, "index out of range")
      makeRoom(for: 0)
      yield unsafe &base[index]
    }
  }

  @inlinable public func withContiguousStorageIfAvailable<Result>(
    _ body: (UnsafeBufferPointer<Element>) throws -> Result
  ) rethrows -> Result? {
    try withExtendedLifetime(block) {
      let start = unsafe block == nil ? nil : UnsafePointer(base)
      return try unsafe body(UnsafeBufferPointer(start: start, count: rows))
    }
  }
}

/// The memory of tables that grow with the number of entries: anonymous up to a budget; beyond it,
/// pages of a temporary file, which the kernel can write out if memory is short (docs/scale.md).
///
/// The file is unnamed and only this user can read it. If it cannot be created or its volume is
/// full, memory stays anonymous.
@safe public final class SpillPool: Sendable {
  /// The pool of this process: 48 MiB, then a file in the system's directory for large temporary
  /// files (Filesystem Hierarchy Standard 3.0, 5.15).
  public static let shared = SpillPool(budget: 48 << 20, directories: ["/var/tmp", "/tmp"])

  /// The number of bytes that stay anonymous.
  public let budget: Int
  private let directories: [ByteString]
  private let state = Mutex(State())

  private struct State: ~Copyable {
    var anonymous = 0
    var spilled = 0
    var file: Descriptor?
    /// Whether the file has been created or has failed; a failure is not retried.
    var hasSought = false
    /// The offset of the next extent in the file.
    var end = 0
  }

  /// Creates a pool.
  ///
  /// - Parameter directories: the directories for the file, in order of preference.
  public init(budget: Int, directories: [ByteString]) {
    (self.budget, self.directories) = (budget, directories)
  }

  /// The number of bytes in the temporary file.
  public var spilledBytes: Int { state.withLock { $0.spilled } }

  /// The number of bytes that the temporary file takes on its volume.
  public var fileBytes: UInt64 {
    state.withLock { state in (try? state.file?.status().allocated) ?? 0 }
  }

  /// The size from which blocks are mapped, in bytes. Smaller ones come from the heap, which reuses
  /// them quickly, and do not count towards the budget.
  static let minimumMapped = 1 << 20

  /// Returns a block of at least `byteCount` bytes with undefined content.
  ///
  /// - Parameter isMapped: whether a small block is mapped as well, so that it can be spilled.
  @usableFromInline func allocate(_ byteCount: Int, isMapped: Bool = false) -> Block {
    guard isMapped || byteCount >= Self.minimumMapped else { return Block(heap: byteCount) }
    let page = Int(getpagesize())
    let size = (byteCount + page - 1) / page * page
    let block = state.withLock { state -> Block? in
      if state.anonymous + size > budget, let block = spill(size, &state) { return block }
      guard let start = unsafe Self.map(size, file: -1, at: 0) else { return nil }
      state.anonymous += size
      return unsafe Block(start, byteCount: size, backing: .anonymous, in: self)
    }
    return block ?? Block(heap: byteCount)
  }

  private func spill(_ size: Int, _ state: inout State) -> Block? {
    if !state.hasSought {
      state.hasSought = true
      state.file = makeFile()
    }
    // Space is reserved: writing to a page without a disk block would kill the program.
    let offset = state.end
    guard let file = state.file?.raw, posix_fallocate(file, offset, size) == 0,
      let start = unsafe Self.map(size, file: file, at: offset)
    else { return nil }
    state.end += size
    state.spilled += size
    return unsafe Block(start, byteCount: size, backing: .file(offset: offset), in: self)
  }

  private func makeFile() -> Descriptor? {
    for path in directories {
      if let file = try? Directory.open(path: path).createUnnamed() { return file }
    }
    return nil
  }

  private static func map(_ size: Int, file: Int32, at offset: Int) -> UnsafeMutableRawPointer? {
    let flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED
    let start = unsafe mmap(nil, size, PROT_READ | PROT_WRITE, flags, file, offset)
    return unsafe start == MAP_FAILED ? nil : start
  }

  fileprivate func release(_ size: Int, _ backing: Block.Backing) {
    state.withLock { state in
      switch backing {
      case .heap: break
      case .anonymous: state.anonymous -= size
      case .file(let offset):
        state.spilled -= size
        // Frees the space on the volume. Without hole punching it is freed when the program exits.
        if let file = state.file?.raw { _ = cl_punch_hole(file, Int64(offset), Int64(size)) }
      }
    }
  }
}

extension SpillPool {
  /// A block of a pool's memory, released with its last reference.
  @usableFromInline @safe final class Block: @unchecked Sendable {
    // Unchecked: only the holder of a unique reference writes; all others read.
    @usableFromInline let start: UnsafeMutableRawPointer
    @usableFromInline let byteCount: Int
    private let backing: Backing
    private let pool: SpillPool?

    /// Whether the block is in the heap and never spilled.
    var isOfHeap: Bool { pool == nil }

    fileprivate enum Backing: Sendable {
      case heap, anonymous
      case file(offset: Int)
    }

    fileprivate init(heap byteCount: Int) {
      unsafe start = .allocate(byteCount: byteCount, alignment: 16)
      self.byteCount = byteCount
      (backing, pool) = (.heap, nil)
    }

    fileprivate init(
      _ start: UnsafeMutableRawPointer, byteCount: Int, backing: Backing, in pool: SpillPool
    ) {
      unsafe self.start = start
      self.byteCount = byteCount
      (self.backing, self.pool) = (backing, pool)
    }

    deinit {
      if let pool {
        unsafe munmap(start, byteCount)
        pool.release(byteCount, backing)
      } else {
        unsafe start.deallocate()
      }
    }
  }
}
