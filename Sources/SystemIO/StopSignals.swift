internal import CLinux
internal import Glibc

/// The signals by which a user asks a long operation to end, or how far it is.
///
/// SIGINT, SIGTERM and SIGHUP ask it to stop at the next moment at which nothing is lost; a second
/// one ends the program at once, with exit status 130. SIGUSR1 asks how far it is. They are the
/// process's: one watch serves all threads. A signal that was ignored when the program began, as
/// SIGHUP under nohup(1), stays ignored.
public enum StopSignals {
  /// What a wait came to.
  public enum Event: Sendable, Hashable {
    /// The program is asked to stop.
    case stop
    /// The user asks how far it is.
    case ask
    /// Another thread called `wake()`.
    case woken
    /// Nothing came in time.
    case nothing
  }

  /// Begins to watch; till then signals do what they do to every program. It is not taken back.
  public static func watch() throws(SystemError) {
    _ = try SystemError.check(.watchSignals, "this process") { cl_watch_signals() }
  }

  /// Whether the program was asked to stop: cheap enough to ask before each file and each MiB.
  @Sendable public static func isStopping() -> Bool { cl_is_stopping() != 0 }

  /// Ends the program as a second signal does: at once, with exit status 130.
  public static func end() -> Never { _exit(CL_INTERRUPTED) }

  /// Waits for a signal, at most so many milliseconds; for one thread.
  public static func wait(milliseconds: Int32) -> Event {
    switch cl_wait_for_signal(milliseconds) {
    case Int(CL_SIGNAL_STOP): .stop
    case Int(CL_SIGNAL_ASK): .ask
    case Int(CL_SIGNAL_WAKE): .woken
    default: .nothing
    }
  }

  /// Wakes the thread that waits.
  public static func wake() { cl_wake() }
}
