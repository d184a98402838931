internal import SandboxModel
internal import SystemIO

/// Whether an app runs whose containers are to be changed (docs/restore.md, "Running apps"): by the
/// platform's own register, then by what processes have open.
struct RunningApps {
  /// A reason to take an app for running.
  struct Sign: Hashable {
    /// The app or the container.
    let app: ByteString
    let process: Int32
    let program: ByteString
    /// The file in use, or what the register says.
    let file: ByteString

    var text: String { "'\(app)' runs: process \(process) (\(program)) uses '\(file)'" }
  }

  /// What runs of the apps whose containers a scan looked at.
  static func signs(in scan: DeviceScan) -> [Sign] {
    let registered = FlatpakRegister.running(among: scan.containers.map(\.container))
    if !registered.isEmpty { return registered }
    var files: [FileIdentity: Int] = [:]
    var owners: Set<UInt32> = []
    for (number, container) in scan.containers.enumerated() {
      for entry in container.entries where container.container.member == nil || entry.isFile {
        files[entry.status.identity] = number
        owners.insert(entry.status.user)
      }
    }
    guard let found = try? Processes.using({ files[$0] != nil }) else {
      return [Sign(app: "any app", process: 0, program: "unknown", file: "/proc cannot be read")]
    }
    return found.uses.map { use in
      Sign(app: app(of: use, scan), process: use.process, program: use.name, file: use.file)
    } + found.unknown.filter { mayBeApp($0, owners) }.map(Self.sign)
  }

  private static func app(of use: Processes.Use, _ scan: DeviceScan) -> ByteString {
    let container = scan.containers.map(\.container).first {
      use.file.isWithin($0.absolutePath)
    }
    return container?.owner?.bytes ?? container?.logicalPrefix ?? "an app of this device"
  }

  private static func sign(_ process: Processes.Process) -> Sign {
    Sign(
      app: "perhaps an app", process: process.number, program: process.name,
      file: "files that cannot be examined")
  }

  /// Whether a process that hides what it uses may be an app: one of the containers' owner that is
  /// neither the system's first nor a service of the user's session. `(sd-pam)` and key agents always
  /// hide themselves, and so does the first process of a sandbox that has more privileges.
  private static func mayBeApp(_ process: Processes.Process, _ owners: Set<UInt32>) -> Bool {
    guard owners.contains(process.user), process.number > 1 else { return false }
    guard let unit = process.controlGroup.lastComponent?.utf8 else { return true }
    return unit != "init.scope" && (!unit.hasSuffix(".service") || unit.hasPrefix("app-"))
  }
}

extension ScannedEntry {
  fileprivate var isFile: Bool { status.kind == .file }
}

/// Flatpak's register of running instances: a folder for each below `$XDG_RUNTIME_DIR/.flatpak`,
/// with the app in `info` and the process in `pid` (flatpak-ps(1)).
enum FlatpakRegister {
  static func running(among containers: [Container]) -> [RunningApps.Sign] {
    guard let runtime = Host.environment("XDG_RUNTIME_DIR"), !containers.isEmpty,
      let folder = try? Folder.open(path: runtime.appending(".flatpak"))
    else { return [] }
    let apps = Set(containers.compactMap(\.owner?.bytes))
    return ((try? folder.names()) ?? []).compactMap { name in
      guard let instance = try? folder.folder(name), let app = app(of: instance),
        apps.contains(app), let process = process(of: instance)
      else { return nil }
      return RunningApps.Sign(
        app: app, process: process, program: "flatpak",
        file: runtime.appending(".flatpak").appending(name))
    }
  }

  private static func app(of instance: borrowing Folder) -> ByteString? {
    guard let info = (try? instance.file("info").readAll(limit: 1 << 20)) ?? nil else { return nil }
    return KeyFile(info).value("name", in: "Application")
  }

  /// The process of an instance, where it lives.
  private static func process(of instance: borrowing Folder) -> Int32? {
    guard let bytes = (try? instance.file("pid").readAll(limit: 64)) ?? nil else { return nil }
    let digits = bytes.prefix { (0x30...0x39).contains($0) }
    guard let number = Int32(String(decoding: digits, as: UTF8.self)),
      (try? Folder.open(path: ByteString("/proc/\(number)"))) != nil
    else { return nil }
    return number
  }
}
