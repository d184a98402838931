internal import Codecs
internal import Synchronization
internal import SystemIO

/// Full frames that wait for a thread without a file of its own, so that all threads compress one
/// large file.
///
/// The queue is bounded: it holds one frame of 4 MiB for each worker. A thread that finds the queue
/// full, or no helpers, compresses the frame itself, so adding a frame never blocks.
final class FrameQueue: Sendable {
  private let queue: BoundedQueue<PackFrame.Plain>
  private let helpers = Atomic<Int>(0)

  init(workers: Int) { queue = BoundedQueue(capacity: workers) }

  /// The time in milliseconds that a helper waits before it checks whether to continue.
  private static let patience = 2

  /// Adds a frame for the helpers. Returns false if there are none or if the queue is full.
  func offer(_ frame: PackFrame.Plain) -> Bool {
    helpers.load(ordering: .relaxed) > 0 && queue.offer(frame)
  }

  /// Returns the next waiting frame, or nil if there is none.
  func next() -> PackFrame.Plain? { queue.take(waitingAtMost: 0) }

  /// Passes frames to `use` as they arrive, until `isDone` returns true and none waits.
  func help(until isDone: () -> Bool, _ use: (inout PackFrame.Plain) -> Void) {
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
