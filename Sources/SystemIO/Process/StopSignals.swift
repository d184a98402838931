internal import CLinux
internal import Glibc

/// The signals that ask a long operation to stop or to report its progress.
///
/// SIGINT, SIGTERM and SIGHUP request a stop at the next point at which no work is lost; a second
/// signal ends the program at once with exit status 130. SIGUSR1 requests progress. Signals belong
/// to the process: one watch serves all threads. A signal that was ignored at the start, such as
/// SIGHUP under nohup(1), stays ignored.
public enum StopSignals {
  /// The result of a wait.
  public enum Event: Sendable, Hashable {
    /// A stop was requested.
    case stop
    /// Progress was requested.
    case ask
    /// Another thread called `wake()`.
    case woken
    /// The wait timed out.
    case nothing
  }

  /// Starts handling the signals; before that they have their default effects. Cannot be undone.
  public static func watch() throws(SystemError) {
    _ = try SystemError.check(.watchSignals, "this process") { cl_watch_signals() }
  }

  /// Whether a stop was requested, or the reader of standard output has ended. Cheap enough to call
  /// before each file and each MiB.
  @Sendable public static func isStopping() -> Bool { cl_is_stopping() != 0 }

  /// Ends the program like a second signal: at once, with exit status 130.
  public static func end() -> Never { _exit(CL_INTERRUPTED) }

  /// Waits for a signal for at most `milliseconds`. For use by one thread.
  ///
  /// - Parameter tolerance: the milliseconds by which the kernel may delay the end of the wait, so
  ///   that it ends together with the timers of other programs (default: the usual 50 µs). Signals
  ///   are not delayed.
  public static func wait(milliseconds: Int32, tolerance: Int32 = 0) -> Event {
    switch cl_wait_for_signal(milliseconds, tolerance) {
    case Int(CL_SIGNAL_STOP): .stop
    case Int(CL_SIGNAL_ASK): .ask
    case Int(CL_SIGNAL_WAKE): .woken
    default: .nothing
    }
  }

  /// Wakes the waiting thread.
  public static func wake() { cl_wake() }
}
