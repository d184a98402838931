internal import Synchronization
internal import SystemIO

/// Messages of threads that answer requests, for the thread that has the console.
final class MountMessages: Sendable {
  private let waiting = Mutex<[String]>([])

  /// Adds a message and wakes the thread that shows it.
  func add(_ text: String) {
    waiting.withLock { $0.append(text) }
    StopSignals.wake()
  }

  /// Prints the messages as warnings.
  func show(on console: Console) {
    let messages = waiting.withLock { waiting in
      defer { waiting = [] }
      return waiting
    }
    for message in messages { console.warning(message) }
  }
}
