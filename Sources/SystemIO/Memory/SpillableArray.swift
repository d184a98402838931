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
