internal import Codecs
internal import Synchronization

/// Hashes several streams of bytes at once, such as the packs that are open at the same time. Their
/// bytes are collected and hashed in the lanes of the processor's vector unit, which takes a third
/// of the time. Safe to use from any thread.
///
/// The collected bytes are a copy in memory, which costs a tenth of the gain. A pack's file is
/// never read back for its hash: after a write error the kernel may have dropped pages, and the
/// hash of the remaining bytes would confirm the loss.
///
/// Its lock is the last that a thread acquires, after those of the packer and the pack. While one
/// thread hashes, the other threads of the group wait with their packs: 0.5 ns per byte, much less
/// than compression takes.
final class MultiStreamHasher: Sendable {
  /// The number of streams for one hasher. More are hashed faster, but more bytes must be collected
  /// until each has some.
  private static let streams = 4
  /// The factory, or nil if the processor gains nothing from hashing streams together.
  static var usual: (() -> MultiStreamHasher)? {
    Blake2b.Stream.gainsTogether ? { MultiStreamHasher(count: 48, size: 128 << 10) } : nil
  }

  /// Returns the hashers of at least `count` streams, one for each stream; several share one.
  static func hashers(
    ofAtLeast count: Int, make: () -> MultiStreamHasher
  ) -> [MultiStreamHasher] {
    (0..<(count + streams - 1) / streams).flatMap { _ in
      [MultiStreamHasher](repeating: make(), count: streams)
    }
  }

  private let portions: Mutex<Portions>

  /// Collects at most `count` portions of `size` bytes. The usual 6 MiB are enough for four packs
  /// that receive frames of 4 MiB in turn to all have waiting bytes whenever a portion must be
  /// freed.
  init(count: Int, size: Int) { portions = Mutex(Portions(count: count, size: size)) }

  /// The number of bytes in memory that wait to be hashed.
  var gathered: Int { portions.withLock { $0.inUse } }

  /// The hash of one stream, computed together with the others of a hasher or alone.
  struct Stream: ~Copyable {
    private let number: Int
    private let hasher: MultiStreamHasher?
    private var alone = Blake2b()

    /// Starts a stream of a hasher, or one on its own.
    init(of hasher: MultiStreamHasher?) {
      number = hasher?.portions.withLock { $0.begin() } ?? 0
      self.hasher = hasher
    }

    deinit { hasher?.portions.withLock { $0.drop(number) } }

    mutating func append(_ bytes: [UInt8]) {
      if let hasher {
        hasher.portions.withLock { $0.append(bytes.span, of: number) }
      } else {
        alone.update(bytes)
      }
    }

    /// Returns the digest of all bytes and starts another hash.
    mutating func finish() -> Digest {
      hasher?.portions.withLock { $0.finish(number) } ?? alone.finish()
    }
  }
}

extension MultiStreamHasher {
  /// The bytes of several streams that wait to be hashed in parallel lanes. Not thread-safe.
  ///
  /// They are stored in portions of equal size, which bounds memory and hashes the same length of
  /// each stream at a time. Hashing is deferred until no portion is free, and then hashes no more
  /// than necessary: the more bytes wait, the more streams contribute to each pass.
  private struct Portions: ~Copyable {
    private let size: Int
    private let count: Int
    /// The memory of all portions; allocated on first use.
    private var memory: [UInt8] = []
    /// The numbers of unused portions.
    private var free: [Int]
    private var streams: [Waiting] = []
    private var begun = 0

    private struct Waiting {
      let number: Int
      var hash = Blake2b.Stream()
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

    /// Returns the number of a new stream.
    mutating func begin() -> Int {
      begun += 1
      return begun
    }

    /// Appends the next bytes of a stream.
    mutating func append(_ bytes: Span<UInt8>, of stream: Int) {
      if memory.isEmpty { memory = [UInt8](repeating: 0, count: count * size) }
      let stream = index(of: stream)
      var start = 0
      while start < bytes.count {
        let portion = portion(of: stream)
        let filled = streams[stream].filled
        let end = min(bytes.count, start + size - filled)
        write(bytes.extracting(start..<end), at: portion * size + filled)
        record(filled: filled + end - start, of: stream)
        start = end
      }
    }

    /// Returns the digest of a stream and forgets the stream.
    mutating func finish(_ stream: Int) -> Digest {
      let index = index(of: stream)
      while !streams[index].full.isEmpty { _ = hashFull() }
      if streams[index].last != nil { hashLast([index]) }
      return streams.remove(at: index).hash.finish()
    }

    /// Forgets a stream whose digest is not needed.
    mutating func drop(_ stream: Int) {
      guard let index = streams.firstIndex(where: { $0.number == stream }) else { return }
      let stream = streams.remove(at: index)
      free += stream.full
      if let last = stream.last { free.append(last) }
    }

    private mutating func index(of stream: Int) -> Int {
      if let index = streams.firstIndex(where: { $0.number == stream }) { return index }
      streams.append(Waiting(number: stream))
      return streams.count - 1
    }

    /// Returns the portion for a stream's next bytes.
    private mutating func portion(of stream: Int) -> Int {
      if let last = streams[stream].last { return last }
      if free.isEmpty { makeRoom() }
      let portion = free.removeLast()
      (streams[stream].last, streams[stream].filled) = (portion, 0)
      return portion
    }

    private mutating func record(filled: Int, of stream: Int) {
      streams[stream].filled = filled
      guard filled == size, let last = streams[stream].last else { return }
      streams[stream].full.append(last)
      streams[stream].last = nil
    }

    private mutating func write(_ bytes: Span<UInt8>, at start: Int) {
      precondition(start >= 0 && start + bytes.count <= memory.count)
      unsafe memory.withUnsafeMutableBytes { memory in
        unsafe bytes.withUnsafeBytes { bytes in
          guard let target = memory.baseAddress, let source = bytes.baseAddress else { return }
          unsafe (target + start).copyMemory(from: source, byteCount: bytes.count)
        }
      }
    }

    /// Frees at least one portion. With more streams than portions, none may be full.
    private mutating func makeRoom() {
      if !hashFull() { hashLast(streams.indices.filter { streams[$0].last != nil }) }
    }

    /// Hashes the first full portion of each stream that has one. Returns false if there is none.
    private mutating func hashFull() -> Bool {
      let indexes = streams.indices.filter { !streams[$0].full.isEmpty }
      if indexes.isEmpty { return false }
      let portions = indexes.map { streams[$0].full.removeFirst() }
      hash(indexes, portions.map { ($0 * size)..<($0 * size + size) })
      free += portions
      return true
    }

    /// Hashes the bytes of partially filled portions.
    private mutating func hashLast(_ indexes: [Int]) {
      let portions = indexes.compactMap { streams[$0].last }
      hash(indexes, zip(indexes, portions).map { ($1 * size)..<($1 * size + streams[$0].filled) })
      for index in indexes { streams[index].last = nil }
      free += portions
    }

    private mutating func hash(_ indexes: [Int], _ runs: [Range<Int>]) {
      var hashes = indexes.map { streams[$0].hash }
      Blake2b.Stream.update(&hashes, by: runs, of: memory.span)
      for (index, hash) in zip(indexes, hashes) { streams[index].hash = hash }
    }
  }
}
