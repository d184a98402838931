internal import DeviceDiscovery
public import SandboxModel
public import SystemIO

/// The running apps among those whose containers are to be changed (docs/restore.md, "Running
/// apps"), determined from the platform's own register and from the files that processes have open.
///
/// A device has many files, and processes use few. The files in use are collected first and then
/// looked up among a scan's entries, which costs one comparison per entry and no memory.
public struct RunningApps {
  public let scan: DeviceScan
  /// Containers of the same apps of which the scan has at most a part. A file below their roots is
  /// found by its path instead.
  private let others: [Container]
  private let registered: [Sign]
  /// The processes in control groups of the device's snaps or units.
  private let members: [Processes.Process]
  private let proc: ByteString
  /// The scanned files in use, each with the index of its container.
  private var used: [FileIdentity: Int] = [:]
  /// The processes that hide the files they use; nil if /proc cannot be read.
  private let unknown: [Processes.Process]?

  /// A sign that an app is running.
  public struct Sign: Hashable, Sendable {
    enum Evidence { case use, hiddenFiles, unreadableProcesses }

    /// The app or the container.
    public let app: ByteString
    /// The process; 0 if the processes cannot be read.
    public let process: Int32
    public let program: ByteString
    /// The file in use, the entry of the register, or the reason why the files are not known.
    public let file: ByteString
    var evidence = Evidence.use

    public var text: String {
      switch evidence {
      case .use: "'\(app)' is running: process \(process) (\(program)) uses '\(file)'"
      case .hiddenFiles:
        "\(app) may be running: the files of process \(process) (\(program)) cannot be examined"
      case .unreadableProcesses: "\(app) may be running: \(file)"
      }
    }
  }

  /// Returns the signs of running apps among those of a scan.
  public static func signs(
    in scan: DeviceScan, besides others: [Container] = [], proc: ByteString = Processes.proc
  ) -> [Sign] {
    RunningApps(scan, besides: others, proc: proc).signs { _ in true }
  }

  /// Returns the signs that an app is running, by the files that processes use below directories.
  ///
  /// - Parameters:
  ///   - directories: absolute paths without links.
  ///   - proc: the mount point of the proc file system.
  package static func signs(
    of app: ByteString, below directories: [ByteString], in proc: ByteString = Processes.proc
  ) -> [Sign] {
    if directories.isEmpty { return [] }
    guard let found = try? Processes.using(in: proc, below: directories, { _ in false }) else {
      return [unreadable(app)]
    }
    return found.uses.map { use in
      Sign(app: app, process: use.process, program: use.name, file: use.file)
    }
  }

  /// Examines all processes listed in the directory `proc`.
  ///
  /// - Parameter others: containers of the scan's apps that it lacks, or has in part.
  public init(
    _ scan: DeviceScan, besides others: [Container] = [], proc: ByteString = Processes.proc
  ) {
    self.scan = scan
    self.others = others
    self.proc = proc
    registered = FlatpakRegister.running(among: scan.containers.map(\.container))
    var all: Set<FileIdentity> = []
    let found = try? Processes.using(
      in: proc, groups: SnapControlGroups.groups(of: scan) ?? UnitControlGroups.groups(of: scan)
    ) {
      all.insert($0)
      return false
    }
    unknown = found?.unknown
    members = found?.members ?? []
    used = Self.indexes(of: all, in: scan)
  }

  /// Returns the signs of running apps among those of the selected containers.
  public func signs(where isWanted: (Container) -> Bool) -> [Sign] {
    let wanted = scan.containers.indices.filter { isWanted(scan.containers[$0].container) }
    let apps = Set(wanted.compactMap { scan.containers[$0].container.owner?.bytes })
    let registered = registered.filter { apps.contains($0.app) } + snaps(apps) + units(apps)
    guard let unknown else { return registered + [Self.unreadable()] }
    let own = Set(wanted)
    let files = used.filter { own.contains($0.value) }
    let below = others.filter(isWanted).map { container in
      container.member.map(container.absolutePath.appending) ?? container.absolutePath
    }
    // A second pass finds the processes that use these files, usually none.
    let uses =
      files.isEmpty && below.isEmpty
      ? [] : (try? Processes.using(in: proc, below: below) { files[$0] != nil })?.uses
    guard let uses else { return registered + [Self.unreadable()] }
    // The register's signs are more precise.
    let known = Set(registered.map(\.process))
    let signs =
      registered
      + uses.filter { !known.contains($0.process) }.map {
        Sign(app: app(of: $0), process: $0.process, program: $0.name, file: $0.file)
      }
    if unknown.isEmpty { return signs }
    let owners = mainOwners(of: wanted)
    let program = Processes.ownName(in: proc)
    return signs
      + unknown.filter { Self.mayBeApp($0, owners) && !Self.isOwn($0, program) }.map(Self.sign)
  }

  /// Returns the signs of snaps according to their control groups. A program of another user is
  /// ignored, since it uses that user's home directory.
  private func snaps(_ apps: Set<ByteString>) -> [Sign] {
    members.compactMap { process in
      guard let app = SnapControlGroups.snap(of: process.controlGroup), apps.contains(app) else {
        return nil
      }
      let own = scan.containers.indices.filter { scan.containers[$0].container.owner?.bytes == app }
      guard owners(of: own).contains(process.user) else { return nil }
      return Sign(
        app: app, process: process.number, program: process.name, file: process.controlGroup)
    }
  }

  /// Returns the signs of active units according to their control groups.
  private func units(_ apps: Set<ByteString>) -> [Sign] {
    if scan.device.layout != .systemd { return [] }
    return members.compactMap { process in
      guard let unit = UnitControlGroups.unit(of: process.controlGroup), apps.contains(unit) else {
        return nil
      }
      return Sign(
        app: unit, process: process.number, program: process.name, file: process.controlGroup)
    }
  }

  /// Returns those of the files that a scan saw, each with the index of its container.
  private static func indexes(
    of files: Set<FileIdentity>, in scan: DeviceScan
  ) -> [FileIdentity: Int] {
    var indexes: [FileIdentity: Int] = [:]
    // A bit for the low 16 bits of each inode number rules out most entries quickly.
    var bits = [Bool](repeating: false, count: 1 << 16)
    for file in files { bits[Int(file.inode & 0xffff)] = true }
    for (number, container) in scan.containers.enumerated() {
      let isOne = container.container.member != nil
      for entry in container.entries where bits[Int(entry.status.identity.inode & 0xffff)] {
        guard files.contains(entry.status.identity), !isOne || entry.isFile else { continue }
        indexes[entry.status.identity] = number
      }
    }
    return indexes
  }

  /// Returns the owners of the containers themselves: a single file of root in a container does not
  /// make every program of root one that may use it.
  private func mainOwners(of containers: [Int]) -> Set<UInt32> {
    containers.reduce(into: []) { owners, number in
      let container = scan.containers[number]
      if container.container.member != nil {
        owners.formUnion(self.owners(of: [number]))
      } else if let root = container.entries.first {
        owners.insert(root.status.user)
      }
    }
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
    let container = (scan.containers.map(\.container) + others).first {
      use.file.isWithin($0.absolutePath)
    }
    return container?.owner?.bytes ?? container?.logicalPrefix ?? "an app of this device"
  }

  /// The sign that stands for all processes, if they cannot be read.
  private static func unreadable(_ app: ByteString = "any app") -> Sign {
    Sign(
      app: app, process: 0, program: "unknown", file: "/proc cannot be read",
      evidence: .unreadableProcesses)
  }

  private static func sign(_ process: Processes.Process) -> Sign {
    Sign(
      app: "an unknown app", process: process.number, program: process.name,
      file: "files that cannot be examined", evidence: .hiddenFiles)
  }

  /// Whether a process that hides its files may be an app: a process of the containers' owner that
  /// is neither the first process of the system nor a service of the user's session. `(sd-pam)` and
  /// key agents always hide their files, and so does the first process of a sandbox with more
  /// privileges.
  private static func mayBeApp(_ process: Processes.Process, _ owners: Set<UInt32>) -> Bool {
    guard owners.contains(process.user), process.number > 1 else { return false }
    guard let unit = process.controlGroup.lastComponent?.utf8 else { return true }
    return unit != "init.scope" && (!unit.hasSuffix(".service") || unit.hasPrefix("app-"))
  }
}

extension RunningApps {
  /// Whether a process that hides its files is one of this program and user. Such a process hides
  /// them as soon as it has a key (`Host.disableCoreDumps`), for example a backup. If it changes
  /// an app, it has the app's lock.
  private static func isOwn(_ process: Processes.Process, _ program: ByteString) -> Bool {
    !program.isEmpty && process.name == program && process.user == Host.userID
  }
}

extension ScannedEntry {
  fileprivate var isFile: Bool { status.kind == .file }
}

// MARK: - The platforms' registers

extension RunningApps {
  /// The running snaps, determined from control groups. Before it confines a program, snapd starts
  /// it in a systemd unit of its own: a scope `snap.<name>.<app>-<uuid>.scope` or a service
  /// `snap.<name>.<app>.service` (snapd's `sandbox/cgroup` and `wrappers`). This detects programs
  /// without open files as well.
  private enum SnapControlGroups {
    private static let prefix = Array("snap.".utf8)
    private static let suffixes = [".scope", ".service"]

    /// Returns the snap of a control group, from the innermost component of its path that belongs
    /// to a snap, or nil.
    ///
    /// Names of snaps and of their instances contain neither a dot nor a character that systemd
    /// escapes. The unit of a snap component has the component's name after an escaped `+`.
    static func snap(of group: ByteString) -> ByteString? {
      for unit in group.components.reversed() {
        guard unit.bytes.starts(with: prefix), suffixes.contains(where: unit.hasSuffix) else {
          continue
        }
        let inner = unit.bytes.dropFirst(prefix.count)
        let name = inner.prefix { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "\\") }
        // The name is followed by the app's name and the type of the unit.
        let rest = inner.dropFirst(name.count).filter { $0 == UInt8(ascii: ".") }
        if !name.isEmpty, rest.count > 1 { return ByteString(name) }
      }
      return nil
    }

    /// Returns a function that tests whether a control group belongs to a snap of the device, or
    /// nil if the device has no snaps.
    static func groups(of scan: DeviceScan) -> ((ByteString) -> Bool)? {
      if scan.device.layout != .snap { return nil }
      let apps = Set(scan.containers.compactMap(\.container.owner?.bytes))
      return { group in snap(of: group).map(apps.contains) ?? false }
    }
  }

  /// The active units, determined from control groups: the system's manager starts the processes of
  /// each unit in a group of the unit's name (systemd, docs/CGROUP_DELEGATION.md).
  private enum UnitControlGroups {
    private static let suffixes = [".service", ".socket", ".mount", ".swap", ".scope"]

    /// Returns the unit of a control group, or nil. It is the outermost one: the inner ones belong
    /// to a user's manager or to a container with its own.
    static func unit(of group: ByteString) -> ByteString? {
      group.components.first { component in suffixes.contains(where: component.hasSuffix) }
    }

    /// Returns a function that tests whether a control group belongs to a unit of the device; nil
    /// unless the device is the running system.
    static func groups(of scan: DeviceScan) -> ((ByteString) -> Bool)? {
      guard scan.device.layout == .systemd, scan.device.root == "/" else { return nil }
      let apps = Set(scan.containers.compactMap(\.container.owner?.bytes))
      return { group in unit(of: group).map(apps.contains) ?? false }
    }
  }

  /// Flatpak's register of running instances: one directory for each in
  /// `$XDG_RUNTIME_DIR/.flatpak`, with the app in `info` and the process in `pid` (flatpak-ps(1)).
  private enum FlatpakRegister {
    static func running(among containers: [Container]) -> [Sign] {
      guard let runtime = Host.environment("XDG_RUNTIME_DIR"), !containers.isEmpty,
        let directory = try? Directory.open(path: runtime.appending(".flatpak"))
      else { return [] }
      let apps = Set(containers.compactMap(\.owner?.bytes))
      return ((try? directory.names()) ?? []).compactMap { name in
        guard let instance = try? directory.directory(name), let app = app(of: instance),
          apps.contains(app), let process = process(of: instance)
        else { return nil }
        return Sign(
          app: app, process: process, program: "flatpak",
          file: runtime.appending(".flatpak").appending(name))
      }
    }

    private static func app(of instance: borrowing Directory) -> ByteString? {
      guard let info = try? instance.file("info").readAll(limit: 1 << 20) else {
        return nil
      }
      return KeyValueFile(info).value("name", in: "Application")
    }

    /// Returns the process of an instance, or nil if it has ended.
    private static func process(of instance: borrowing Directory) -> Int32? {
      guard let bytes = try? instance.file("pid").readAll(limit: 64) else { return nil }
      let digits = bytes.prefix { (0x30...0x39).contains($0) }
      guard let number = Int32(String(decoding: digits, as: UTF8.self)),
        (try? Directory.open(path: ByteString("/proc/\(number)"))) != nil
      else { return nil }
      return number
    }
  }
}
