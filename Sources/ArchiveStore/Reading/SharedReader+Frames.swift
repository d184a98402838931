internal import Codecs
internal import Synchronization

extension SharedReader {
  /// Verified bytes in a decoded frame.
  package struct Slice: Sendable {
    package let frame: Frame
    package let range: Range<Int>

    /// The number of bytes.
    package var count: Int { range.count }

    /// A copy of the bytes.
    package var bytes: [UInt8] { Array(frame.bytes[range]) }

    /// Returns a part of the slice.
    package func part(_ part: Range<Int>) -> Slice {
      let start = range.lowerBound + part.lowerBound
      return Slice(frame: frame, range: start..<(start + part.count))
    }
  }

  /// A decoded frame, with the blobs in it that were verified: a file is read in many ranges.
  package final class Frame: Sendable {
    package let bytes: [UInt8]
    /// The time at which it was decoded, in seconds of the reader's clock.
    fileprivate let time: Double
    private let verified = Mutex<Set<Verified>>([])

    private struct Verified: Hashable {
      let start: Int
      let digest: Digest
    }

    init(_ bytes: [UInt8], decodedAt time: Double) { (self.bytes, self.time) = (bytes, time) }

    /// Whether a range matches a hash.
    func isWhole(_ range: Range<Int>, _ digest: Digest) -> Bool {
      // The digest determines the length.
      let mark = Verified(start: range.lowerBound, digest: digest)
      if verified.withLock({ $0.contains(mark) }) { return true }
      let bytes = bytes
      guard Blake2b.hash(bytes.span.extracting(range)) == digest else { return false }
      verified.withLock { _ = $0.insert(mark) }
      return true
    }
  }

  /// Decoded frames, and those that cannot be decoded.
  final class FrameTable: Sendable {
    typealias Key = FrameDecoder.Key

    private struct State {
      var frames: CostBoundedCache<Key, Frame>
      var lost: [Key: Lost] = [:]
      var decoded = 0
    }

    /// The error of a frame, and the time at which it was found.
    private struct Lost {
      let error: StoreError
      let time: Double
    }

    private let state: Mutex<State>
    private let clock: @Sendable () -> Double
    /// A thread decodes a frame while it holds the gate of its key.
    private let gates = (0..<64).map { _ in Gate() }
    /// The maximum number of damaged frames that are remembered.
    private static let lostLimit = 10_000

    private final class Gate: Sendable {
      let lock = Mutex<Void>(())
    }

    init(capacity: Int, clock: @escaping @Sendable () -> Double) {
      self.clock = clock
      state = Mutex(State(frames: CostBoundedCache(capacity: capacity)))
    }

    var decoded: Int { state.withLock { $0.decoded } }
    var heldBytes: Int { state.withLock { $0.frames.cost } }

    /// Returns a held frame, or the result of `decode`, which is then held. A frame that failed to
    /// decode is not tried again for a minute.
    func frame(
      _ key: Key, decode: () throws(StoreError) -> Frame
    ) throws(StoreError) -> Frame {
      if let frame = try heldOrLost(key) { return frame }
      return try gate(of: key).lock.withLock { _ throws(StoreError) in
        if let frame = try heldOrLost(key) { return frame }
        return try hold(key, decode)
      }
    }

    /// Returns the result of `decode` in place of a frame with wrong bytes, or nil if that was
    /// decoded less than a minute ago.
    func renew(
      _ wrong: Frame, _ key: Key, decode: () throws(StoreError) -> Frame
    ) throws(StoreError) -> Frame? {
      guard clock() - wrong.time >= SharedReader.retryInterval else { return nil }
      return try gate(of: key).lock.withLock { _ throws(StoreError) in
        // Another thread may have renewed it.
        if let frame = try heldOrLost(key, besides: wrong) { return frame }
        return try hold(key, decode)
      }
    }

    private func gate(of key: Key) -> Gate { gates[key.hashValue & (gates.count - 1)] }

    private func hold(
      _ key: Key, _ decode: () throws(StoreError) -> Frame
    ) throws(StoreError) -> Frame {
      do throws(StoreError) {
        let frame = try decode()
        state.withLock {
          $0.frames.insert(frame, for: key, cost: frame.bytes.count)
          $0.decoded += 1
        }
        return frame
      } catch {
        record(error, key)
        throw error
      }
    }

    /// Returns a frame if it is held.
    func held(_ key: Key) -> Frame? { state.withLock { $0.frames.value(key) } }

    private func heldOrLost(
      _ key: Key, besides wrong: Frame? = nil
    ) throws(StoreError) -> Frame? {
      try state.withLock { state throws(StoreError) in
        if let frame = state.frames.value(key), frame !== wrong { return frame }
        guard let lost = state.lost[key] else { return nil }
        if clock() - lost.time < SharedReader.retryInterval { throw lost.error }
        state.lost[key] = nil
        return nil
      }
    }

    private func record(_ error: StoreError, _ key: Key) {
      guard error.code == .damaged else { return }
      let lost = Lost(error: error, time: clock())
      state.withLock { if $0.lost.count < Self.lostLimit { $0.lost[key] = lost } }
    }
  }
}
