internal import SystemIO

/// The signals received by a thread that waits for an answer (proc(5), `status`).
///
/// The kernel interrupts a request for each signal, even for one that does not end a program, such
/// as that of a timer, a resized window or a debugger. Programs do not expect EINTR from a file
/// system for these: only fatal signals interrupt a local one.
struct RequesterSignals {
  /// The signals that the thread and its process have received and not handled.
  private var pending: UInt64 = 0
  private var blocked: UInt64 = 0
  private var ignored: UInt64 = 0
  private var caught: UInt64 = 0
  private var isDead = false

  /// SIGHUP, SIGINT, SIGQUIT and SIGTERM, by which users end programs. A program that handles them
  /// can do so only after the call.
  private static let endings = mask([1, 2, 3, 15])
  /// SIGKILL. The kernel sends it to each thread of a process that another signal ends.
  private static let kill = mask([9])
  /// SIGCHLD to SIGTTOU, SIGURG and SIGWINCH, which end no program by default.
  private static let harmless = mask([17, 18, 19, 20, 21, 22, 23, 28])

  private static func mask(_ signals: [UInt64]) -> UInt64 {
    signals.reduce(0) { $0 | 1 << ($1 - 1) }
  }

  /// Reads the lines of the file `status` of a thread.
  init(status: some Sequence<UInt8>) {
    let text = String(decoding: Array(status), as: UTF8.self)
    for line in text.split(separator: "\n") {
      let words = line.split { $0 == "\t" || $0 == " " }
      guard words.count > 1 else { continue }
      let signals = UInt64(words[1], radix: 16) ?? 0
      switch words[0] {
      case "State:": isDead = words[1] == "Z" || words[1] == "X"
      case "SigPnd:", "ShdPnd:": pending |= signals
      case "SigBlk:": blocked = signals
      case "SigIgn:": ignored = signals
      case "SigCgt:": caught = signals
      default: break
      }
    }
  }

  private var taken: UInt64 { pending & ~blocked & ~ignored }

  /// Whether the program is being ended and cannot prevent it.
  var areFatal: Bool {
    isDead || pending & Self.kill != 0 || taken & ~caught & ~Self.harmless != 0
  }

  /// Whether the program is being ended, or was asked to end.
  var areEnding: Bool { areFatal || taken & Self.endings != 0 }

  /// Whether a thread is being ended. If it no longer exists or cannot be examined, it counts as
  /// being ended once the request has waited.
  ///
  /// - Parameter hasWaited: whether the request has been waiting since the signal. Otherwise only
  ///   fatal signals count: a server that reloads its settings after SIGHUP must get its answer.
  static func areEnding(_ thread: Int32, hasWaited: Bool) -> Bool {
    guard thread > 0,
      let file = try? Descriptor.open(path: ByteString("/proc/\(thread)/status")),
      let status = try? file.readAll(limit: 64 << 10)
    else { return hasWaited }
    let signals = RequesterSignals(status: status)
    return hasWaited ? signals.areEnding : signals.areFatal
  }
}
