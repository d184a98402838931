/// The state of the machine on which a program's work may depend: mains power, a metered network,
/// and whether the machine is idle.
///
/// The kernel's files are read below `root`; the answers of other programs come from `run`. Tests
/// replace both.
public struct MachineState {
  /// The directory that contains `sys` and `proc`.
  private let root: ByteString
  /// Runs a program and returns its standard output; nil if it is missing or fails.
  private let run: ([ByteString]) -> String?

  /// Creates the state of a machine (default: this one).
  public init(
    root: ByteString = "/", run: @escaping ([ByteString]) -> String? = MachineState.output
  ) {
    self.root = root
    self.run = run
  }

  /// Runs a program of `PATH`; nil if it is missing or does not end with 0.
  public static func output(of words: [ByteString]) -> String? {
    guard let ending = try? ChildProgram.run(words), ending.code == 0 else { return nil }
    return String(decoding: ending.output, as: UTF8.self)
  }

  /// Whether the machine has mains power; true if it reports no supply.
  public var isOnMainsPower: Bool {
    Host.isOnMainsPower(supplies: root.appending("sys/class/power_supply"))
  }

  /// Whether the network is metered; nil if neither NetworkManager nor ModemManager reports it.
  ///
  /// NetworkManager's property `Metered` is 1 for yes and 3 for a guess of yes, 2 and 4 for no
  /// (NMMetered, networkmanager.dev). Without it, a connected modem counts as metered.
  public var isMetered: Bool? {
    let name: ByteString = "org.freedesktop.NetworkManager"
    let property = run([
      "busctl", "--timeout=5", "get-property", name, "/org/freedesktop/NetworkManager", name,
      "Metered",
    ])
    switch property.flatMap({ Self.words($0).last }) {
    case "1", "3": return true
    case "2", "4": return false
    default: break
    }
    let devices = run(["nmcli", "--terse", "--get-values", "GENERAL.METERED", "device", "show"])
    let answers = (devices ?? "").split(separator: "\n").map { $0.prefix { $0.isLetter } }
    if answers.contains("yes") { return true }
    if answers.contains("no") { return false }
    let modem = run(["mmcli", "--modem=any", "--output-keyvalue"]) ?? ""
    let isConnected = modem.split(separator: "\n").contains { line in
      line.hasPrefix("modem.generic.state ") && Self.words(String(line)).last == "connected"
    }
    return isConnected ? true : nil
  }

  /// The load average of the last minute (proc_loadavg(5)); nil if it cannot be read.
  public var load: Double? {
    let path = root.appending("proc/loadavg")
    guard let bytes = try? Descriptor.open(path: path).read(count: 128, at: 0) else { return nil }
    return Self.words(String(decoding: bytes, as: UTF8.self)).first.flatMap { Double($0) }
  }

  /// Whether all sessions are idle according to logind (org.freedesktop.login1(5), `IdleHint`); nil
  /// without logind.
  public var areSessionsIdle: Bool? {
    let text = run(["loginctl", "show-session", "--property=IdleHint"]) ?? ""
    switch text.split(separator: "\n").first {
    case "IdleHint=yes": return true
    case "IdleHint=no": return false
    default: return nil
    }
  }

  private static func words(_ text: String) -> [Substring] {
    text.split { $0 == " " || $0 == "\n" || $0 == "\t" }
  }
}
