internal import Codecs
internal import Synchronization
internal import SystemIO

/// Full frames that wait for a thread which has no file of its own, so that one large file is
/// compressed by all.
///
/// Bounded by memory: of 4 MiB frames one waits for each worker; who finds the queue full, or nobody
/// to help, compresses the frame itself. So no one ever waits to put a frame in.
final class FrameQueue: Sendable {
  private let queue: BoundedQueue<PlainFrame>
  private let helpers = Atomic<Int>(0)

  init(workers: Int) { queue = BoundedQueue(capacity: workers) }

  /// How long a helper waits before it looks whether it is still to help.
  private static let patience = 2

  /// Gives a frame to the helpers; false when there are none, or enough waits for them.
  func offer(_ frame: PlainFrame) -> Bool {
    helpers.load(ordering: .relaxed) > 0 && queue.offer(frame)
  }

  /// The next frame, if one waits.
  func next() -> PlainFrame? { queue.take(waitingAtMost: 0) }

  /// Gives frames to `use` as they come, until `isDone` and none waits.
  func help(until isDone: () -> Bool, _ use: (inout PlainFrame) -> Void) {
    helpers.add(1, ordering: .relaxed)
    defer { helpers.subtract(1, ordering: .relaxed) }
    while true {
      let isLast = isDone()
      if var frame = queue.take(waitingAtMost: isLast ? 0 : Self.patience) {
        use(&frame)
      } else if isLast {
        return
      }
    }
  }
}
