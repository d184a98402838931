internal import ArchiveStore
internal import Synchronization
internal import SystemIO

/// Ranges of objects that are read soon and are fetched ahead by several threads, adjacent ones in
/// one request: a reader that knows its needs does not wait for each answer.
///
/// Pieces are fetched in the order of their first use, and at most `window` of them are held. If
/// all of them fit, all are held until they are read, in any order. A reader that needs a piece on
/// which no thread works yet fetches it itself, so it never waits for others. A piece that cannot
/// be fetched is read again by the reader, which gets the error, unless the user has interrupted
/// the fetch.
final class ExpectedRanges: Sendable {
  /// The largest piece in bytes, and the largest gap between two ranges in one piece.
  private static let pieceLimit: UInt64 = 4 << 20
  private static let gapLimit: UInt64 = 64 << 10
  /// The number of pieces that are fetched or held at once.
  private static let window = 8
  /// The number of pieces before the current one that readers may still request, unless all are
  /// held.
  private static let usualBehind = 4
  /// The number of pieces whose memory is kept.
  private static let spareLimit = 4

  /// Neighbouring ranges of one object.
  private struct Piece {
    let path: ObjectPath
    var range: Range<UInt64>
    /// The bytes of the ranges that have not been taken. Ranges of encrypted objects may overlap.
    var rest: UInt64
  }

  private enum Fetched {
    case waiting
    /// Closed at the end.
    case loading(BoundedQueue<UInt8>)
    case held([UInt8], hasSlot: Bool)
    case interrupted(StoreError)
    case gone
  }

  private struct State {
    var pieces: [Piece]
    var fetched: [Fetched]
    /// The first piece that may be waiting.
    var next = 0
    /// The pieces before this one are gone.
    var first = 0
    var isOver = false
    /// The memory of pieces that are gone, for those that are fetched next.
    var spare: [[UInt8]] = []
  }

  private let base: any Storage
  private let state: Mutex<State>
  /// The numbers of the pieces of an object, in the order of their offsets.
  private let numbers: [ObjectPath: [Int]]
  private let behind: Int
  /// The number of bytes for which the memory of a piece is reserved, so that another piece can use
  /// it; 0 if all are held.
  private let reserved: Int
  /// One element for each piece that is fetched ahead or held.
  private let slots: BoundedQueue<UInt8>
  private let workers: Workers?

  init(_ ranges: [ObjectRange], from base: any Storage, threads: Int) {
    self.base = base
    let pieces = Self.pieces(of: ranges)
    let size = pieces.reduce(UInt64(0)) { $0 + UInt64($1.range.count) }
    let areAllHeld = size <= UInt64(Self.window) * Self.pieceLimit
    reserved = areAllHeld ? 0 : Int(Self.pieceLimit)
    behind = areAllHeld ? pieces.count : Self.usualBehind
    slots = BoundedQueue(capacity: areAllHeld ? max(Self.window, pieces.count) : Self.window)
    var numbers: [ObjectPath: [Int]] = [:]
    for (number, piece) in pieces.enumerated() { numbers[piece.path, default: []].append(number) }
    self.numbers = numbers.mapValues { list in
      list.sorted { pieces[$0].range.lowerBound < pieces[$1].range.lowerBound }
    }
    state = Mutex(
      State(pieces: pieces, fetched: [Fetched](repeating: .waiting, count: pieces.count)))
    let threads = min(threads, pieces.count)
    workers = threads > 0 ? try? Workers(count: threads, capacity: threads, name: "ahead") : nil
    for _ in 0..<threads { workers?.submit { [self] in work() } }
  }

  private static func pieces(of ranges: [ObjectRange]) -> [Piece] {
    var pieces: [Piece] = []
    for range in ranges where !range.range.isEmpty {
      let count = UInt64(range.range.count)
      if let last = pieces.last, last.path == range.path,
        range.range.lowerBound >= last.range.lowerBound,
        range.range.lowerBound <= last.range.upperBound + gapLimit,
        range.range.upperBound - last.range.lowerBound <= pieceLimit
      {
        pieces[pieces.count - 1].range =
          last.range.lowerBound..<max(last.range.upperBound, range.range.upperBound)
        pieces[pieces.count - 1].rest += count
      } else {
        pieces.append(Piece(path: range.path, range: range.range, rest: count))
      }
    }
    return pieces
  }

  /// Stops fetching. Waiting readers read by themselves.
  func end() {
    state.withLock { $0.isOver = true }
    slots.close()
    workers?.finish()
  }

  // MARK: - Fetching

  /// Fetches pieces until none is left.
  private func work() {
    while slots.enqueue(0) {
      let found: (number: Int, done: BoundedQueue<UInt8>)? = state.withLock { state in
        guard !state.isOver, let number = Self.nextWaiting(&state) else { return nil }
        return (number, Self.begin(number, &state))
      }
      guard let found else { return }
      fetch(found.number, done: found.done, hasSlot: true)
    }
  }

  private static func nextWaiting(_ state: inout State) -> Int? {
    while state.next < state.fetched.count {
      if case .waiting = state.fetched[state.next] { return state.next }
      state.next += 1
    }
    return nil
  }

  private static func begin(_ number: Int, _ state: inout State) -> BoundedQueue<UInt8> {
    let done = BoundedQueue<UInt8>(capacity: 1)
    state.fetched[number] = .loading(done)
    return done
  }

  /// Fetches a piece. A piece that a reader fetches has no slot: there are as many as readers.
  private func fetch(_ number: Int, done: BoundedQueue<UInt8>, hasSlot: Bool) {
    let piece = state.withLock { $0.pieces[number] }
    let fetched = fetched(piece, hasSlot: hasSlot)
    let isHeld = state.withLock { state in
      state.fetched[number] = state.isOver || number < state.first ? .gone : fetched
      guard case .held = state.fetched[number] else { return false }
      return true
    }
    done.close()
    if hasSlot, !isHeld { _ = slots.dequeue(waitingAtMost: 0) }
  }

  private func fetched(_ piece: Piece, hasSlot: Bool) -> Fetched {
    do throws(StoreError) {
      var bytes = state.withLock { $0.spare.popLast() } ?? []
      bytes.reserveCapacity(reserved)
      try base.load(
        piece.path, offset: piece.range.lowerBound, count: piece.range.count, into: &bytes)
      return .held(bytes, hasSlot: hasSlot)
    } catch { return error.code == .interrupted ? .interrupted(error) : .gone }
  }

  // MARK: - Taking

  private enum Found {
    case nothing
    case interrupted(StoreError)
    case bytes([UInt8], start: UInt64)
    case wait(BoundedQueue<UInt8>)
    case fetch(BoundedQueue<UInt8>)
  }

  /// Copies a range that is within a piece. Returns false if the caller has to read it.
  ///
  /// - Throws: `interrupted` if the user has ended the fetch. Another attempt would fail for the
  ///   reason that the fetch waited for.
  func take(_ wanted: ObjectRange, into buffer: inout [UInt8]) throws(StoreError) -> Bool {
    guard let number = number(of: wanted) else { return false }
    var isTaken = false
    while !isTaken {
      switch find(number) {
      case .nothing: return false
      case .interrupted(let error): throw error
      case .bytes(let bytes, let start):
        let first = Int(wanted.range.lowerBound - start)
        buffer.removeAll(keepingCapacity: true)
        buffer += bytes[first..<(first + wanted.range.count)]
        isTaken = true
      case .wait(let done): _ = done.dequeue()
      case .fetch(let done): fetch(number, done: done, hasSlot: false)
      }
    }
    // Here `bytes` is gone: memory that is referred to elsewhere is not used again.
    dropPieces(after: wanted.range.count, of: number)
    return true
  }

  /// Returns the number of the piece that contains a range.
  private func number(of wanted: ObjectRange) -> Int? {
    guard let list = numbers[wanted.path] else { return nil }
    return state.withLock { state in
      var (low, high) = (0, list.count)
      while low < high {
        let middle = (low + high) / 2
        if state.pieces[list[middle]].range.upperBound < wanted.range.upperBound {
          low = middle + 1
        } else {
          high = middle
        }
      }
      guard low < list.count,
        state.pieces[list[low]].range.lowerBound <= wanted.range.lowerBound
      else { return nil }
      return list[low]
    }
  }

  /// Returns what there is of a piece.
  private func find(_ number: Int) -> Found {
    state.withLock { state in
      if state.isOver { return .nothing }
      switch state.fetched[number] {
      case .waiting: return .fetch(Self.begin(number, &state))
      case .loading(let done): return .wait(done)
      case .interrupted(let error): return .interrupted(error)
      case .gone: return .nothing
      case .held(let bytes, _):
        return .bytes(bytes, start: state.pieces[number].range.lowerBound)
      }
    }
  }

  /// Drops the pieces that are no longer needed after a range of one was copied.
  private func dropPieces(after count: Int, of number: Int) {
    let dropped = state.withLock { state in
      state.pieces[number].rest -= min(UInt64(count), state.pieces[number].rest)
      var dropped = 0
      if state.pieces[number].rest == 0 { dropped += Self.drop(number, &state) }
      while state.first + behind < number {
        dropped += Self.drop(state.first, &state)
        state.first += 1
      }
      return dropped
    }
    for _ in 0..<dropped { _ = slots.dequeue(waitingAtMost: 0) }
  }

  /// Drops the held pieces of an object, which readers then read by themselves.
  func forget(_ path: ObjectPath) {
    let dropped = state.withLock { state in
      numbers[path, default: []].reduce(0) { $0 + Self.drop($1, &state) }
    }
    for _ in 0..<dropped { _ = slots.dequeue(waitingAtMost: 0) }
  }

  /// Drops a held piece. Returns the number of its slots.
  private static func drop(_ number: Int, _ state: inout State) -> Int {
    guard case .held(let bytes, let hasSlot) = state.fetched[number] else { return 0 }
    state.fetched[number] = .gone
    if state.spare.count < spareLimit { state.spare.append(bytes) }
    return hasSlot ? 1 : 0
  }
}
