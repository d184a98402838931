internal import Synchronization
internal import SystemIO

/// One connection to a server. Any thread sends requests; a separate thread reads the answers and
/// hands each to the thread that waits for it.
///
/// At most `window` requests are unanswered at any time; further ones wait. It ends when it is
/// released, together with its program.
final class SFTPConnection: Sendable {
  /// The maximum number of unanswered requests.
  static let window = 64

  let core: Core
  private let workers: Workers
  /// The files and directories that are kept open.
  let openFiles = SFTPOpenFiles()
  let version: SFTPVersion
  private let asked: Mutex<AskedLimits>

  /// The server's limits, which are requested with the greeting. Nothing waits for the answer until
  /// they are needed.
  private enum AskedLimits {
    case waiting(Exchange, UInt32)
    case known(SFTPLimits)
  }

  /// Connects and agrees on the version.
  ///
  /// - Parameters:
  ///   - silence: the seconds without an expected answer, or some kilobytes of one, after which
  ///     the connection counts as lost.
  ///   - outages: receives each sign of the server.
  ///   - isStopping: whether the user asked to stop, after which that time is `stopSilence`.
  init(
    _ connector: SFTPConnector, silence: Double, outages: OutageWatch? = nil,
    isStopping: @escaping @Sendable () -> Bool
  ) throws(SFTPFailure) {
    do throws(SystemError) {
      core = Core(
        input: try connector.input(), silence: silence, outages: outages, isStopping: isStopping)
      workers = try Workers(count: 1, capacity: 1, name: "sftp")
    } catch {
      throw .impossible(SFTPEnding(.noProgram, reason: error.description))
    }
    let core = core
    workers.submit { core.serve(connector) }
    do throws(SFTPFailure) {
      version = try core.greet()
      asked = Mutex(try Self.askForLimits(core, version))
    } catch {
      core.close()
      workers.finish()
      throw error
    }
  }

  deinit {
    core.close()
    workers.finish()
  }

  private static func askForLimits(
    _ core: Core, _ version: SFTPVersion
  ) throws(SFTPFailure) -> sending AskedLimits {
    guard version.extensions.contains(.limits) else { return .known(SFTPLimits()) }
    let exchange = Exchange(core)
    return .waiting(exchange, try exchange.send(.limits))
  }

  /// The server's limits. If they cannot be received, the connection has ended, which the next call
  /// reports.
  var limits: SFTPLimits {
    asked.withLock { asked in
      switch asked {
      case .known(let limits): return limits
      case .waiting(let exchange, let id):
        let limits = receiveLimits(exchange, id)
        asked = .known(limits)
        return limits
      }
    }
  }

  private func receiveLimits(_ exchange: Exchange, _ id: UInt32) -> SFTPLimits {
    do throws(SFTPFailure) {
      guard case .extended(let fields) = try exchange.answer(id) else { return SFTPLimits() }
      do { return try SFTPLimits(fields) } catch { throw SFTPFailure(error) }
    } catch {
      if case .refused = error { return SFTPLimits() }
      core.finish(error)
      core.close()
      return SFTPLimits()
    }
  }

  /// Whether the server offers an extension.
  func has(_ name: SFTPExtension) -> Bool { version.extensions.contains(name) }

  /// Whether the connection can be used.
  var isOpen: Bool { core.ending == nil }

  /// Gives up the connection: all waiting threads fail with `lost`.
  func abandon(_ reason: String) {
    core.finish(.lost(SFTPEnding(.unreachable, reason: reason)))
    core.close()
  }

  /// Returns a file that is closed when it is released.
  func file(_ handle: SFTPHandle) -> SFTPOpenFile { SFTPOpenFile(handle, core) }

  /// Starts an exchange of one thread.
  func exchange() -> Exchange { Exchange(core) }

  /// Sends a request whose answer does not matter.
  func post(_ request: SFTPRequest) { _ = try? core.send(request, to: nil) }

  /// Sends a request and waits for its answer; a status other than success is `refused`.
  func call(_ request: SFTPRequest) throws(SFTPFailure) -> SFTPReply {
    let exchange = exchange()
    return try exchange.answer(try exchange.send(request))
  }

  /// Sends requests without waiting in between, and returns their answers in the same order. Any
  /// status is an answer.
  func callAll(_ requests: [SFTPRequest]) throws(SFTPFailure) -> [SFTPReply] {
    let exchange = exchange()
    var replies: [SFTPReply] = []
    var ids: [UInt32] = []
    while replies.count < requests.count {
      while ids.count < requests.count, exchange.pending < Self.window {
        ids.append(try exchange.send(requests[ids.count]))
      }
      replies.append(try exchange.anyAnswer(ids[replies.count]))
    }
    return replies
  }
}

extension SFTPConnection {
  /// The state that the threads share.
  final class Core: Sendable {
    private let input: any SFTPInput
    private let silence: Double
    private let outages: OutageWatch?
    private let isStopping: @Sendable () -> Bool
    private let state = Mutex(State())
    /// One element for each unanswered request.
    private let slots = BoundedQueue<UInt8>(capacity: SFTPConnection.window)
    private let greeting = BoundedQueue<SFTPVersion>(capacity: 1)
    /// Locked while a packet is written, so that packets are not mixed.
    private let writing = Mutex(())

    /// The receiver of an answer; without a mailbox the answer is dropped.
    private struct Waiter {
      let mailbox: Mailbox?
    }

    private struct State {
      var waiting: [UInt32: Waiter] = [:]
      var next: UInt32 = 0
      var ending: SFTPFailure?
      var isClosing = false
      var isGreeted = false
      /// The time of the last received bytes, by the monotonic clock.
      var lastHeard = Host.monotonicSeconds()
      /// The time of the last whole answer, or of `portion` bytes of one.
      var lastProgress = Host.monotonicSeconds()
      /// The bytes that were received since.
      var received = 0
    }

    /// The number of bytes of an answer that count as progress, even if it is incomplete: a large
    /// one takes a while on a slow link, but a server that occasionally sends a byte may never end.
    private static let portion = 8 << 10

    /// The seconds without an answer after which a connection is lost once a stop was requested.
    private static let stopSilence = 10.0
    /// The seconds that a program has to end after its input ends, before it is ended.
    private static let endPatience = 2.0

    init(
      input: any SFTPInput, silence: Double, outages: OutageWatch?,
      isStopping: @escaping @Sendable () -> Bool
    ) {
      (self.input, self.silence) = (input, silence)
      (self.outages, self.isStopping) = (outages, isStopping)
    }

    /// The failure of all requests from now on, once the connection has ended.
    var ending: SFTPFailure? { state.withLock { $0.ending } }

    /// Ends the connection for its users: waiting threads fail. The first reason counts.
    func finish(_ failure: SFTPFailure) {
      let waiting = state.withLock { state in
        if state.ending == nil { state.ending = failure }
        defer { state.waiting = [:] }
        return state.waiting.values.compactMap(\.mailbox)
      }
      slots.close()
      greeting.close()
      for mailbox in waiting { mailbox.close() }
    }

    /// Asks the server and the thread to end.
    func close() {
      finish(.lost(SFTPEnding(.unreachable, reason: "the connection was closed")))
      state.withLock { $0.isClosing = true }
      input.close()
    }

    /// Returns the version that the server answered with.
    func greet() throws(SFTPFailure) -> SFTPVersion {
      try write(SFTPRequest.hello)
      let version = try wait(for: greeting)
      guard version.number == 3 else {
        throw .impossible(
          SFTPEnding(
            .violation,
            reason: "it speaks version \(version.number) of the protocol, and version 3 is needed"))
      }
      return version
    }

    /// Sends a request, whose answer goes to a mailbox or is dropped.
    @discardableResult
    func send(_ request: SFTPRequest, to mailbox: Mailbox?) throws(SFTPFailure) -> UInt32 {
      guard slots.enqueue(0) else { throw failure }
      let id: UInt32? = state.withLock { state in
        if state.ending != nil { return nil }
        repeat { state.next &+= 1 } while state.waiting[state.next] != nil
        state.waiting[state.next] = Waiter(mailbox: mailbox)
        return state.next
      }
      guard let id else { throw failure }
      try write(request.packet(id))
      return id
    }

    private func write(_ packet: [UInt8]) throws(SFTPFailure) {
      do {
        try writing.withLock { _ throws(SystemError) in
          let begun = Host.monotonicSeconds()
          try input.write(packet) { !giveUp(silentSince: begun) }
        }
      } catch {
        // The connection's thread will soon know the reason, and find the end of the stream.
        awaitEnding()
        throw failure
      }
    }

    /// Waits until the connection's thread has determined why the program ended.
    private func awaitEnding() {
      let limit = Host.monotonicSeconds() + Self.endPatience
      while ending == nil, Host.monotonicSeconds() < limit { Host.pause(seconds: 0.01) }
      finish(.lost(SFTPEnding(.unreachable, reason: "the connection to the server was lost")))
    }

    private var failure: SFTPFailure {
      ending ?? .lost(SFTPEnding(.unreachable, reason: "the connection was closed"))
    }

    /// Waits for an element that the connection's thread adds.
    func wait<Element>(for queue: BoundedQueue<Element>) throws(SFTPFailure) -> Element {
      let start = Host.monotonicSeconds()
      while true {
        if let element = queue.dequeue(waitingAtMost: 1000) { return element }
        if let ending { throw ending }
        _ = giveUp(silentSince: start)
      }
    }

    /// Records received bytes, and whether an answer is complete.
    fileprivate func didReceive(_ count: Int, isWhole: Bool) {
      state.withLock { state in
        state.lastHeard = Host.monotonicSeconds()
        state.received += count
        guard isWhole || state.received >= Self.portion else { return }
        (state.lastProgress, state.received) = (state.lastHeard, 0)
      }
    }

    /// Ends the connection if too little was received for too long, counted at the earliest from a
    /// time of the monotonic clock. Returns whether it did.
    private func giveUp(silentSince start: Double) -> Bool {
      let isStopping = isStopping()
      let heard = max(start, state.withLock { isStopping ? $0.lastHeard : $0.lastProgress })
      let limit = isStopping ? min(silence, Self.stopSilence) : silence
      guard Host.monotonicSeconds() - heard > limit else { return false }
      let reason = "the server did not answer for \(Int(limit)) seconds"
      finish(.lost(SFTPEnding(.unreachable, reason: reason)))
      close()
      return true
    }
  }
}

// MARK: - The connection's thread

extension SFTPConnection.Core {
  /// Connects, and reads answers until the connection ends.
  func serve(_ connector: SFTPConnector) {
    let peer: any SFTPPeer
    do {
      peer = try connector.connect(input)
    } catch {
      return finish(.impossible(SFTPEnding(.noProgram, reason: error.description)))
    }
    do throws(SFTPViolation) {
      try receiveAll(peer)
      input.close()
      settle(peer)
      finish(ending(of: peer))
    } catch {
      finish(SFTPFailure(error))
      input.close()
      settle(peer)
    }
    peer.end()
  }

  /// Waits briefly for the end of a program whose streams have ended, because it prints its reason.
  private func settle(_ peer: any SFTPPeer) {
    let limit = Host.monotonicSeconds() + Self.endPatience
    _ = try? peer.waitForEnd { Host.monotonicSeconds() > limit }
  }

  private func ending(of peer: any SFTPPeer) -> SFTPFailure {
    let wasConnected = state.withLock { $0.isGreeted }
    // Enough to find the line that names the reason among others, such as a banner.
    let lines = peer.lastErrorLines(40)
    let ending = SFTPEnding(lines: lines, code: peer.code, wasConnected: wasConnected)
    return wasConnected || !ending.isPermanent ? .lost(ending) : .impossible(ending)
  }

  private func receiveAll(_ peer: any SFTPPeer) throws(SFTPViolation) {
    var frames = SFTPFrames()
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    let isClosing = { self.state.withLock { $0.isClosing } }
    while !isClosing(), let count = try? peer.read(into: &buffer, isStopping: isClosing), count > 0
    {
      outages?.didHear()
      frames.append(buffer[..<count])
      var isWhole = false
      while let packet = try frames.next() {
        isWhole = true
        try deliver(try SFTPPacket(packet))
      }
      didReceive(count, isWhole: isWhole)
    }
  }

  private func deliver(_ packet: SFTPPacket) throws(SFTPViolation) {
    switch packet {
    case .version(let version):
      let isFirst = state.withLock { state in
        defer { state.isGreeted = true }
        return !state.isGreeted
      }
      guard isFirst else { throw SFTPViolation(reason: "it sent its version twice") }
      _ = greeting.offer(version)
    case .reply(let id, let reply):
      let found = state.withLock { $0.waiting.removeValue(forKey: id) }
      guard let found else {
        if ending != nil { return }
        throw SFTPViolation(reason: "it answered the request \(id), which was not sent")
      }
      _ = slots.dequeue(waitingAtMost: 0)
      _ = found.mailbox?.offer(SFTPConnection.Answer(id: id, reply: reply))
    }
  }
}
