internal import CBlake2b

extension Blake2b {
  /// A hash that takes its bytes piece by piece, several at the same time: each in a lane of the
  /// processor's vectors, where there are lanes that can be trusted, else by libsodium one by one.
  ///
  /// Four streams that get as much each take a third of the time that they take one by one; a stream
  /// alone takes as long as a `Blake2b` does.
  public struct Stream {
    /// How many lanes there are for it and those that are hashed with it; without any, libsodium.
    private let lanes: Int
    private var state = cb_stream()
    private var alone: Alone?

    /// Makes a stream of no bytes yet.
    public init() { self.init(lanes: Blake2b.lanes) }

    init(lanes: Int) {
      self.lanes = lanes
      if lanes == 0 { alone = Alone(Blake2b()) } else { unsafe cb_begin(&state) }
    }

    /// Whether streams take less time together than one by one.
    public static var gainsTogether: Bool { Blake2b.lanes > 0 }

    /// Takes into each stream a run of bytes, which may be empty. Runs may overlap; each must lie
    /// within the bytes.
    public static func update(
      _ streams: inout [Stream], by runs: [Range<Int>], of bytes: Span<UInt8>
    ) {
      precondition(streams.count == runs.count, "each stream takes one run")
      guard let lanes = streams.first?.lanes else { return }
      precondition(streams.allSatisfy { $0.lanes == lanes }, "streams of one kind go together")
      if lanes > 0 { return updateInLanes(&streams, runs, bytes, lanes) }
      for (number, run) in runs.enumerated() {
        streams[number].updateAlone(bytes.extracting(run))
      }
    }

    /// The digest of all bytes taken in so far.
    public func finish() -> Digest {
      if let alone { return alone.finish() }
      var last = state
      unsafe cb_finish(&last)
      return Blake2b.digest(last.state)
    }

    private static func updateInLanes(
      _ streams: inout [Stream], _ runs: [Range<Int>], _ bytes: Span<UInt8>, _ lanes: Int
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

/// libsodium's hash of a stream; changed only by the one stream that has it.
private final class Alone {
  var hash: Blake2b

  init(_ hash: consuming Blake2b) { self.hash = hash }

  func copy() -> Alone { Alone(hash.copy()) }

  func finish() -> Digest {
    var last = hash.copy()
    return last.finish()
  }
}
