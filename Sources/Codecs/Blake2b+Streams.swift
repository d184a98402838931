internal import CBlake2b

extension Blake2b {
  /// An incremental hash of one of several streams that are hashed together: each in a lane of the
  /// processor's vector unit, or with libsodium one after the other if there are no trusted lanes.
  ///
  /// Four streams that advance equally take a third of the time of hashing them one by one. A
  /// single stream takes as long as a `Blake2b`.
  package struct Stream {
    /// The number of lanes for this stream and those hashed with it; 0 uses libsodium.
    private let lanes: Int
    private var state = cb_stream()
    private var alone: SodiumHasher?

    /// Creates a hash of no bytes.
    package init() { self.init(lanes: Blake2b.lanes) }

    init(lanes: Int) {
      self.lanes = lanes
      if lanes == 0 { alone = SodiumHasher(Blake2b()) } else { unsafe cb_begin(&state) }
    }

    /// Whether hashing streams together is faster than one by one.
    package static var gainsTogether: Bool { Blake2b.lanes > 0 }

    /// Adds one byte range, which may be empty, to each stream. Ranges may overlap; each must be
    /// within the bytes.
    package static func update(
      _ streams: inout [Stream], by runs: [Range<Int>], of bytes: Span<UInt8>
    ) {
      precondition(streams.count == runs.count, "one range for each stream")
      guard let lanes = streams.first?.lanes else { return }
      precondition(streams.allSatisfy { $0.lanes == lanes }, "streams with different lanes")
      if lanes > 0 { return updateInLanes(&streams, with: runs, of: bytes, lanes: lanes) }
      for (number, run) in runs.enumerated() {
        streams[number].updateAlone(bytes.extracting(run))
      }
    }

    /// Returns the digest of all bytes added so far.
    package func finish() -> Digest {
      if let alone { return alone.finish() }
      var last = state
      unsafe cb_finish(&last)
      return Blake2b.digest(last.state)
    }

    private static func updateInLanes(
      _ streams: inout [Stream], with runs: [Range<Int>], of bytes: Span<UInt8>, lanes: Int
    ) {
      for run in runs { precondition(run.lowerBound >= 0 && run.upperBound <= bytes.count) }
      var states = streams.map(\.state)
      unsafe bytes.withUnsafeBufferPointer { buffer in
        var portions = unsafe runs.map { run in
          unsafe cb_run(
            bytes: buffer.baseAddress.map { unsafe $0 + run.lowerBound }, length: run.count)
        }
        unsafe cb_update(Int32(lanes), &states, &portions, portions.count)
      }
      for (number, state) in states.enumerated() { streams[number].state = state }
    }

    private mutating func updateAlone(_ bytes: Span<UInt8>) {
      if !isKnownUniquelyReferenced(&alone) { alone = alone?.copy() }
      alone?.hash.update(bytes)
    }
  }
}

/// The libsodium hash of a stream. Changed only by the stream that owns it.
private final class SodiumHasher {
  var hash: Blake2b

  init(_ hash: consuming Blake2b) { self.hash = hash }

  func copy() -> SodiumHasher { SodiumHasher(hash.copy()) }

  func finish() -> Digest {
    var last = hash.copy()
    return last.finish()
  }
}
