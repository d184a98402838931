package import SandboxModel
package import SystemIO

/// Finds the device in a directory: its layout, apps and containers.
///
/// Changes nothing and leaves nothing open. An unreadable part is reported as a finding and does
/// not prevent access to the others. Throws only if the root is not a device.
package struct DeviceFinder: Sendable {
  /// The layout to look for, or nil to detect it.
  package var layout: Layout?
  /// The name that the user gives the device, which becomes its identity.
  package var name: ByteString?
  /// The machine ID, part of the identity of devices without an identity of their own.
  var machineID: String?
  /// The user's Flatpak installation, or nil for that of the home directory that contains the
  /// device.
  var userFlatpak: ByteString?
  /// The system's Flatpak installation, or nil for none.
  var systemFlatpak: ByteString?
  /// The root of the system to which the home directory belongs, with snap system data and the
  /// installed apps, or nil to derive it from the path of the home directory.
  var systemRoot: ByteString?

  /// Creates a finder for this machine.
  package init(
    layout: Layout? = nil, name: ByteString? = nil, machineID: String? = Host.machineID,
    userFlatpak: ByteString? = nil, systemFlatpak: ByteString? = "/var/lib/flatpak",
    systemRoot: ByteString? = nil
  ) {
    self.layout = layout
    self.name = name
    self.machineID = machineID
    self.userFlatpak = userFlatpak
    self.systemFlatpak = systemFlatpak
    self.systemRoot = systemRoot
  }

  /// Finds the device at `root`, following links in the path.
  ///
  /// - Throws: `system` if the directory cannot be opened; `noDevice` if it is not a device, or not
  ///   one with the requested layout.
  package func find(_ root: ByteString) throws(ModelError) -> Device {
    do {
      let real = try Host.realPath(root)
      let directory = try Directory.open(resolved: real)
      let device = try device(in: directory, try form(of: directory, asked: root), asked: root)
      return layout == nil ? device.noting(others: Self.layouts(of: directory)) : device
    } catch let error as SystemError {
      throw ModelError(error, "find a device in")
    } catch let error as ModelError {
      throw error
    } catch {
      throw ModelError(.noDevice, "read the device", on: root, reason: "\(error)")
    }
  }

  private func device(
    in directory: borrowing Directory, _ form: DirectoryForm, asked: ByteString
  ) throws -> Device {
    switch form {
    case .coreSimulator(let form): CoreSimulatorFinder.device(in: directory, form, for: self)
    case .flatpakApps:
      FlatpakFinder.device(in: directory, home: try home(of: directory, asked), for: self)
    case .flatpakHome: try FlatpakFinder.device(inHome: directory, for: self)
    case .snapDirectory:
      SnapFinder.device(
        in: directory,
        home: try home(of: directory, asked, above: ["snap"])
          ?? home(of: directory, asked, above: [".snap", "data"]),
        for: self)
    case .snapHome(let name): try SnapFinder.device(inHome: directory, name, for: self)
    case .macOSHome: MacOSFinder.device(in: directory, for: self)
    case .macOSContainers(let home):
      MacOSFinder.device(in: try Directory.open(resolved: home), for: self)
    case .androidApps: AndroidFinder.device(in: directory, for: self)
    case .androidSystem(let path): try AndroidFinder.device(in: directory, at: path, for: self)
    case .systemdRoot: SystemdFinder.device(in: directory, for: self)
    case .xdgHome: XDGFinder.device(in: directory, for: self)
    case .folder: plain(directory.path)
    }
  }

  /// Returns the Flatpaks of a home directory that is not a device yet: it has no `.var/app` until
  /// the first of them is started.
  ///
  /// - Parameter home: an absolute path without links.
  package func flatpaks(inNewHome home: ByteString) -> [App] {
    FlatpakFinder.apps(inNewHome: home, for: self)
  }

  /// Returns the device for a plain directory that does not exist yet, at an absolute path without
  /// links.
  package func missingDirectory(_ path: ByteString) -> Device { plain(path) }

  private func plain(_ path: ByteString) -> Device {
    let name = path.lastComponent ?? "root"
    let logical = LogicalContainer.folder(LogicalName(name))
    let container = Container(
      kind: .folder, identifier: nil, identification: .layout, owner: nil, path: "",
      absolutePath: path, member: nil, uuid: nil, revision: nil, inUseSince: nil,
      bundleDirectory: nil, logical: logical, isReadable: true, logicalPrefix: logical.prefix)
    return Device(
      root: path, layout: .folder, identity: identity(.folder, path), apps: [],
      containers: [container], findings: [])
  }

  /// Returns the identity of a device at an absolute path without links.
  ///
  /// - Parameter udid: the identifier in the device's own records, or nil if it has none.
  package func identity(
    _ layout: Layout, _ root: ByteString, udid: ByteString? = nil
  ) -> Device.Identity {
    if let name { return .named(name) }
    if let udid { return .udid(udid) }
    return .location(machine: machineID.map { ByteString($0) }, layout, root: root)
  }

  /// Returns the home directory that contains a layout's directory, or nil if there is none.
  ///
  /// The path is resolved again here. A link in it that was replaced after the directory was opened
  /// could lead to another user's home directory, whose data would become part of the device. So
  /// the directory must also be found below the home directory.
  ///
  /// - Parameter directories: The names from the home directory to the layout's directory.
  private func home(
    of directory: borrowing Directory, _ asked: ByteString,
    above directories: [ByteString] = FlatpakFinder.directories
  ) throws(SystemError) -> ByteString? {
    let identity = try directory.status().identity
    let absolute = asked.isAbsolute ? asked : (Host.workingDirectory() ?? "/").appending(asked)
    for path in [absolute, try Host.realPath(asked)] {
      guard let above = Self.directory(above: directories, at: path) else { continue }
      let home = try Host.realPath(above)
      let found = try Directory.open(resolved: home).statusFollowing(
        ByteString(joining: directories))
      guard found.identity == identity else { throw SystemError.replaced(asked) }
      return home
    }
    return nil
  }

  /// Returns the directory whose descendant with the given names is at a path, or nil if the path
  /// does not end with them. No link is resolved.
  static func directory(above names: [ByteString], at path: ByteString) -> ByteString? {
    let parts = path.components.filter { $0 != "." }
    guard parts.suffix(names.count) == names[...], !parts.contains("..") else { return nil }
    return Self.path(parts.dropLast(names.count))
  }

  /// Returns the root of the system to which a home directory belongs, or nil if the path does not
  /// determine it. For `home/<user>` (`Users/<user>`) or `root`, it is the directory above, which
  /// may be another system's disk; for the current user's home directory it is `/`.
  package func system(ofHome home: ByteString, below users: ByteString) -> ByteString? {
    if let systemRoot { return systemRoot }
    let parts = home.components
    if parts.count > 1, parts[parts.count - 2] == users { return Self.path(parts.dropLast(2)) }
    if parts.last == "root" { return Self.path(parts.dropLast()) }
    return home == Self.currentUserHome ? "/" : nil
  }

  /// The real path of the current user's home directory.
  static var currentUserHome: ByteString? {
    Host.environment("HOME").flatMap { try? Host.realPath($0) }
  }

  static func path(_ parts: some Sequence<ByteString>) -> ByteString {
    ByteString(joining: parts, isAbsolute: true)
  }
}

extension Device {
  /// Returns the device with a note about each other layout of its directory.
  fileprivate func noting(others layouts: [Layout]) -> Device {
    var device = self
    for other in layouts where other != layout {
      device.findings.append(
        Finding(
          .note, .anotherLayout, at: root,
          reason: "the directory also has the layout \(other.rawValue); select it with '--layout "
            + "\(other.rawValue)'"
        ))
    }
    device.findings.sort()
    return device
  }

  /// Finds the device at `root` on this machine and detects its layout unless it is given.
  ///
  /// - Throws: The errors of `DeviceFinder.find(_:)`.
  package static func find(root: ByteString, layout: Layout? = nil) throws(ModelError) -> Device {
    try DeviceFinder(layout: layout).find(root)
  }
}
