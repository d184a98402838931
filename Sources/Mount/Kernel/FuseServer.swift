internal import CFuse

/// A thread's handling of requests.
struct FuseServer {
  private let session: OpaquePointer
  private let connection: FuseConnection
  private var buffer = fuse_buf()
  private var received: UInt64 = 0
  /// Whether several programs make requests at once, so that several threads should answer.
  private var isShared = false

  /// The time for which a thread looks for the next request before it waits, in nanoseconds: more
  /// than cp(1) needs between two requests.
  private static let patience: UInt64 = 100_000
  /// The number of requests after which a thread checks whether others wait.
  private static let interval: UInt64 = 8

  init(_ session: OpaquePointer, _ connection: FuseConnection) {
    (self.session, self.connection) = (session, connection)
  }

  /// Handles requests until the file system is unmounted. Several threads may do so; while all
  /// others handle requests, one only receives them.
  mutating func run() {
    cf_use_short_slices()
    let (turn, queue) = (connection.files.turn, connection.queue)
    queue.join()
    while fuse_session_exited(session) == 0 {
      if queue.runNext(before: { turn.pass() }) { continue }
      turn.take()
      if connection.rate.isQuick { cf_look(session, Self.patience) }
      let result = fuse_session_receive_buf(session, &buffer)
      if result == -Int32(CF_EINTR) { continue }
      if result <= 0 { break }
      received += 1
      if received % Self.interval == 0 { isShared = cf_has_request(session) != 0 }
      if isShared || cf_is_quick(&buffer) == 0 { turn.pass() }
      fuse_session_process_buf(session, &buffer)
    }
    queue.leave()
    turn.pass()
    free(buffer.mem)
  }
}
