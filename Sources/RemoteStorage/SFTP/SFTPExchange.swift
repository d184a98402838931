internal import SystemIO

extension SFTPConnection {
  /// The requests of one thread and their answers, which arrive in any order. Not thread-safe.
  final class Exchange {
    private let core: Core
    private let mailbox = Mailbox(capacity: SFTPConnection.window)
    private var arrived: [UInt32: SFTPReply] = [:]
    /// The number of requests whose answers have not been taken.
    private(set) var pending = 0

    init(_ core: Core) { self.core = core }

    /// Sends a request. If the mailbox may become full, answers are taken first: an excess answer
    /// would be dropped, and awaited until the connection counts as lost.
    func send(_ request: SFTPRequest) throws(SFTPFailure) -> UInt32 {
      while pending >= SFTPConnection.window {
        let (id, reply) = try receive()
        arrived[id] = reply
      }
      let id = try core.send(request, to: mailbox)
      pending += 1
      return id
    }

    /// Waits for the answer to a request; a status other than success is `refused`.
    func answer(_ id: UInt32) throws(SFTPFailure) -> SFTPReply {
      let reply = try anyAnswer(id)
      if case .status(let status) = reply, status.code != .success { throw .refused(status) }
      return reply
    }

    /// Waits for the answer to a request; any status is an answer.
    func anyAnswer(_ id: UInt32) throws(SFTPFailure) -> SFTPReply {
      while true {
        if let reply = arrived.removeValue(forKey: id) { return reply }
        let (other, reply) = try receive()
        arrived[other] = reply
      }
    }

    /// Waits for the answer to any of the requests.
    func next() throws(SFTPFailure) -> (id: UInt32, reply: SFTPReply) {
      if let first = arrived.first {
        arrived[first.key] = nil
        return (first.key, first.value)
      }
      return try receive()
    }

    private func receive() throws(SFTPFailure) -> (id: UInt32, reply: SFTPReply) {
      let answer = try core.wait(for: mailbox)
      pending -= 1
      return (answer.id, answer.reply)
    }
  }

  /// An answer with the number of its request.
  struct Answer: Sendable {
    let id: UInt32
    let reply: SFTPReply
  }

  typealias Mailbox = BoundedQueue<Answer>
}
