internal import Codecs

/// The bytes of several packs that wait to be hashed in parallel lanes. Not thread-safe.
///
/// They are stored in portions of equal size, which bounds memory and hashes the same length of
/// each pack at a time. Hashing is deferred until no portion is free, and then hashes no more than
/// necessary: the more bytes wait, the more packs contribute to each pass.
struct GatheredBytes: ~Copyable {
  private let size: Int
  private let count: Int
  /// The memory of all portions; allocated on first use.
  private var memory: [UInt8] = []
  /// The numbers of unused portions.
  private var free: [Int]
  private var packs: [Pack] = []

  private struct Pack {
    let number: Int
    var stream = Blake2b.Stream()
    /// The full portions, in the order of their bytes.
    var full: [Int] = []
    /// The portion being filled, and the number of bytes in it.
    var last: Int?
    var filled = 0
  }

  /// Creates room for `count` portions of `size` bytes.
  init(count: Int, size: Int) {
    (self.count, self.size) = (count, size)
    free = Array((0..<count).reversed())
  }

  /// The bytes of the portions in use, including partially filled ones.
  var inUse: Int { (count - free.count) * size }

  /// Appends the next bytes of a pack.
  mutating func append(_ bytes: Span<UInt8>, of pack: Int) {
    if memory.isEmpty { memory = [UInt8](repeating: 0, count: count * size) }
    let pack = place(of: pack)
    var start = 0
    while start < bytes.count {
      let portion = portion(of: pack)
      let filled = packs[pack].filled
      let end = min(bytes.count, start + size - filled)
      put(bytes.extracting(start..<end), at: portion * size + filled)
      note(filled: filled + end - start, of: pack)
      start = end
    }
  }

  /// Returns the digest of a pack and forgets the pack.
  mutating func finish(_ pack: Int) -> Digest {
    let place = place(of: pack)
    while !packs[place].full.isEmpty { _ = hashFull() }
    if packs[place].last != nil { hashLast([place]) }
    return packs.remove(at: place).stream.finish()
  }

  /// Forgets a pack whose digest is not needed.
  mutating func drop(_ pack: Int) {
    guard let place = packs.firstIndex(where: { $0.number == pack }) else { return }
    let pack = packs.remove(at: place)
    free += pack.full
    if let last = pack.last { free.append(last) }
  }

  private mutating func place(of pack: Int) -> Int {
    if let place = packs.firstIndex(where: { $0.number == pack }) { return place }
    packs.append(Pack(number: pack))
    return packs.count - 1
  }
}

// MARK: - Portions

extension GatheredBytes {
  /// Returns the portion for a pack's next bytes.
  private mutating func portion(of pack: Int) -> Int {
    if let last = packs[pack].last { return last }
    if free.isEmpty { makeRoom() }
    let portion = free.removeLast()
    (packs[pack].last, packs[pack].filled) = (portion, 0)
    return portion
  }

  private mutating func note(filled: Int, of pack: Int) {
    packs[pack].filled = filled
    guard filled == size, let last = packs[pack].last else { return }
    packs[pack].full.append(last)
    packs[pack].last = nil
  }

  private mutating func put(_ bytes: Span<UInt8>, at start: Int) {
    precondition(start >= 0 && start + bytes.count <= memory.count)
    unsafe memory.withUnsafeMutableBytes { memory in
      unsafe bytes.withUnsafeBytes { bytes in
        guard let target = memory.baseAddress, let source = bytes.baseAddress else { return }
        unsafe (target + start).copyMemory(from: source, byteCount: bytes.count)
      }
    }
  }

  /// Frees at least one portion. With more packs than portions, none may be full.
  private mutating func makeRoom() {
    if !hashFull() { hashLast(packs.indices.filter { packs[$0].last != nil }) }
  }

  /// Hashes the first full portion of each pack that has one. Returns false if there is none.
  private mutating func hashFull() -> Bool {
    let places = packs.indices.filter { !packs[$0].full.isEmpty }
    if places.isEmpty { return false }
    let portions = places.map { packs[$0].full.removeFirst() }
    hash(places, portions.map { ($0 * size)..<($0 * size + size) })
    free += portions
    return true
  }

  /// Hashes the bytes of partially filled portions.
  private mutating func hashLast(_ places: [Int]) {
    let portions = places.compactMap { packs[$0].last }
    hash(places, zip(places, portions).map { ($1 * size)..<($1 * size + packs[$0].filled) })
    for place in places { packs[place].last = nil }
    free += portions
  }

  private mutating func hash(_ places: [Int], _ runs: [Range<Int>]) {
    var streams = places.map { packs[$0].stream }
    Blake2b.Stream.update(&streams, by: runs, of: memory.span)
    for (place, stream) in zip(places, streams) { packs[place].stream = stream }
  }
}
