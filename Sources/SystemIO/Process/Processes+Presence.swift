internal import Glibc

extension Processes {
  /// Whether a process that was recorded still runs, as far as this process can find out.
  public enum Presence: Sendable, Hashable {
    case running, ended, unknown
  }

  /// A text that identifies the source of process numbers and start times on this machine: the
  /// running kernel and the namespaces (namespaces(7)). It differs in another container, and after
  /// a restart. Returns nil if `proc` does not show this process by its own number, because numbers
  /// then have another meaning there, or if the kernel has no boot ID.
  public static func numbering(in proc: ByteString = Processes.proc) -> String? {
    guard let all = try? Directory.open(path: proc),
      (try? all.target(of: "self")) == ByteString("\(Host.processID)"),
      let boot = Host.bootID,
      // A process that leaves no core dumps cannot list the directory.
      let numbers = try? all.target(of: "self/ns/pid")
    else { return nil }
    // Kernels before 5.6 have no time namespaces.
    let times = (try? all.target(of: "self/ns/time")) ?? "-"
    return "\(boot) \(numbers) \(times)"
  }

  /// Returns the time at which a process started, in ticks since the kernel started: no two
  /// processes with the same number have the same time. Returns nil if the process is not shown.
  public static func startTime(
    of number: Int32, in proc: ByteString = Processes.proc
  ) -> UInt64? {
    status(of: number, in: proc)?.start
  }

  /// Whether the process that had a number and a start time still runs.
  public static func presence(
    of number: Int32, startedAt start: UInt64, in proc: ByteString = Processes.proc
  ) -> Presence {
    guard number > 0 else { return .unknown }
    guard let found = status(of: number, in: proc) else {
      // /proc may hide the processes of other users (hidepid in proc(5)).
      return kill(number, 0) != 0 && errno == ESRCH ? .ended : .unknown
    }
    guard found.start == start else { return .ended }
    return found.isEnded ? .ended : .running
  }

  private struct Status {
    let start: UInt64
    /// Whether it has ended, and its parent has not noticed: it has no other threads.
    let isEnded: Bool
  }

  /// Reads the state, the number of threads and the start time: the third, the 20th and the 22nd
  /// field of proc_pid_stat(5).
  private static func status(of number: Int32, in proc: ByteString) -> Status? {
    guard let all = try? Directory.open(path: proc),
      let directory = try? all.directory(ByteString("\(number)"))
    else { return nil }
    let text = (try? read(directory.file("stat"), limit: 1 << 12)) ?? []
    guard let end = text.lastIndex(of: UInt8(ascii: ")")) else { return nil }
    let fields = text[end...].split(separator: UInt8(ascii: " ")).map {
      String(decoding: $0, as: UTF8.self)
    }
    guard fields.count > 20, let start = UInt64(fields[20]) else { return nil }
    let isZombie = ["Z", "X"].contains(fields[1]) && (Int(fields[18]) ?? 2) < 2
    return Status(start: start, isEnded: isZombie)
  }
}
