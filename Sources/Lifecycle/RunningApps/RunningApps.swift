internal import SandboxModel
internal import SystemIO

/// Whether apps run whose containers are to be changed (docs/restore.md, "Running apps"): by the
/// platform's own register, then by what processes have open.
///
/// A device has many files and processes use few: so first all that any process uses is noted, and
/// then looked for among a scan's entries, which costs each of them a comparison and no memory.
struct RunningApps {
  let scan: DeviceScan
  private let registered: [Sign]
  /// Processes in control groups of the device's snaps.
  private let members: [Processes.Process]
  private let proc: ByteString
  /// The files of the scan's that processes use, each with its container's place.
  private var used: [FileIdentity: Int] = [:]
  /// Processes that hide what they use; nothing where /proc cannot be read.
  private let unknown: [Processes.Process]?

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
  static func signs(in scan: DeviceScan, proc: ByteString = Processes.proc) -> [Sign] {
    RunningApps(scan, proc: proc).signs { _ in true }
  }

  /// Looks at all processes, as the directory `proc` tells of them.
  init(_ scan: DeviceScan, proc: ByteString = Processes.proc) {
    self.scan = scan
    self.proc = proc
    registered = FlatpakRegister.running(among: scan.containers.map(\.container))
    var all: Set<FileIdentity> = []
    let found = try? Processes.using(
      in: proc, groups: SnapRegister.groups(of: scan)
    ) {
      all.insert($0)
      return false
    }
    unknown = found?.unknown
    members = found?.members ?? []
    used = Self.places(of: all, in: scan)
  }

  /// What runs of the apps of some of the containers.
  func signs(where isWanted: (Container) -> Bool) -> [Sign] {
    let wanted = scan.containers.indices.filter { isWanted(scan.containers[$0].container) }
    let apps = Set(wanted.compactMap { scan.containers[$0].container.owner?.bytes })
    let registered = registered.filter { apps.contains($0.app) } + snaps(apps)
    guard let unknown else { return registered + [Self.unreadable] }
    let own = Set(wanted)
    let files = used.filter { own.contains($0.value) }
    // Whose they are is asked for again: mostly nobody's.
    let uses = files.isEmpty ? [] : (try? Processes.using(in: proc) { files[$0] != nil })?.uses
    guard let uses else { return registered + [Self.unreadable] }
    // What the register names it names better.
    let known = Set(registered.map(\.process))
    let signs =
      registered
      + uses.filter { !known.contains($0.process) }.map {
        Sign(app: app(of: $0), process: $0.process, program: $0.name, file: $0.file)
      }
    if unknown.isEmpty { return signs }
    let owners = owners(of: wanted)
    return signs + unknown.filter { Self.mayBeApp($0, owners) }.map(Self.sign)
  }

  /// The signs of some snaps that the register names: a program that another user runs works in a home
  /// of its own.
  private func snaps(_ apps: Set<ByteString>) -> [Sign] {
    members.compactMap { process in
      guard let app = SnapRegister.snap(of: process.controlGroup), apps.contains(app) else {
        return nil
      }
      let own = scan.containers.indices.filter { scan.containers[$0].container.owner?.bytes == app }
      guard owners(of: own).contains(process.user) else { return nil }
      return Sign(
        app: app, process: process.number, program: process.name, file: process.controlGroup)
    }
  }

  /// Those of some files that a scan saw, each with its container's place.
  private static func places(
    of files: Set<FileIdentity>, in scan: DeviceScan
  ) -> [FileIdentity: Int] {
    var places: [FileIdentity: Int] = [:]
    // A bit for what the number of a file ends with: most entries need no further look.
    var bits = [Bool](repeating: false, count: 1 << 16)
    for file in files { bits[Int(file.inode & 0xffff)] = true }
    for (number, container) in scan.containers.enumerated() {
      let isOne = container.container.member != nil
      for entry in container.entries where bits[Int(entry.status.identity.inode & 0xffff)] {
        guard files.contains(entry.status.identity), !isOne || entry.isFile else { continue }
        places[entry.status.identity] = number
      }
    }
    return places
  }

  private func owners(of containers: [Int]) -> Set<UInt32> {
    var owners: Set<UInt32> = []
    var last: UInt32?
    for container in containers.map({ scan.containers[$0] }) {
      for entry in container.entries
      where entry.status.user != last && (container.container.member == nil || entry.isFile) {
        last = entry.status.user
        owners.insert(entry.status.user)
      }
    }
    return owners
  }

  private func app(of use: Processes.Use) -> ByteString {
    let container = scan.containers.map(\.container).first {
      use.file.isWithin($0.absolutePath)
    }
    return container?.owner?.bytes ?? container?.logicalPrefix ?? "an app of this device"
  }

  private static let unreadable = Sign(
    app: "any app", process: 0, program: "unknown", file: "/proc cannot be read")

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

/// Flatpak's register of running instances: a directory for each below `$XDG_RUNTIME_DIR/.flatpak`,
/// with the app in `info` and the process in `pid` (flatpak-ps(1)).
enum FlatpakRegister {
  static func running(among containers: [Container]) -> [RunningApps.Sign] {
    guard let runtime = Host.environment("XDG_RUNTIME_DIR"), !containers.isEmpty,
      let directory = try? Directory.open(path: runtime.appending(".flatpak"))
    else { return [] }
    let apps = Set(containers.compactMap(\.owner?.bytes))
    return ((try? directory.names()) ?? []).compactMap { name in
      guard let instance = try? directory.directory(name), let app = app(of: instance),
        apps.contains(app), let process = process(of: instance)
      else { return nil }
      return RunningApps.Sign(
        app: app, process: process, program: "flatpak",
        file: runtime.appending(".flatpak").appending(name))
    }
  }

  private static func app(of instance: borrowing Directory) -> ByteString? {
    guard let info = (try? instance.file("info").readAll(limit: 1 << 20)) ?? nil else { return nil }
    return KeyFile(info).value("name", in: "Application")
  }

  /// The process of an instance, where it lives.
  private static func process(of instance: borrowing Directory) -> Int32? {
    guard let bytes = (try? instance.file("pid").readAll(limit: 64)) ?? nil else { return nil }
    let digits = bytes.prefix { (0x30...0x39).contains($0) }
    guard let number = Int32(String(decoding: digits, as: UTF8.self)),
      (try? Directory.open(path: ByteString("/proc/\(number)"))) != nil
    else { return nil }
    return number
  }
}
