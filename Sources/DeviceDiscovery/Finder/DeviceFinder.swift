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
  package var machineID: String?
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
      let directory = try Directory.open(path: real)
      let device = try device(in: directory, try place(of: directory, asked: root), asked: root)
      return layout == nil ? device.noting(others: Self.layouts(of: directory)) : device
    } catch let error as SystemError {
      throw ModelError(
        .system, "find a device in", on: error.path, reason: error.reason, hint: error.hint)
    } catch let error as ModelError {
      throw error
    } catch {
      throw ModelError(.noDevice, "read the device", on: root, reason: "\(error)")
    }
  }

  private func device(
    in directory: borrowing Directory, _ place: Location, asked: ByteString
  ) throws -> Device {
    switch place {
    case .coreSimulator(let place): coreSimulator(directory, place)
    case .flatpakApps: flatpak(directory, home: try home(of: asked))
    case .flatpakHome: try flatpak(home: directory, asked: asked)
    case .snapDirectory:
      snap(
        directory,
        home: try home(of: asked, above: ["snap"]) ?? home(of: asked, above: [".snap", "data"]))
    case .snapHome(let name): try snap(home: directory, name)
    case .macOSHome: macOS(directory)
    case .macOSContainers(let home): macOS(try Directory.open(path: home))
    case .folder: plain(directory.path)
    }
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
      metadataUUID: nil, bundleDirectory: nil,
      logical: logical, isReadable: true, logicalPrefix: logical.prefix)
    return Device(
      root: path, layout: .folder, identity: identity(.folder, path), apps: [],
      containers: [container], findings: [])
  }

  func identity(_ layout: Layout, _ root: ByteString, udid: ByteString? = nil) -> Device.Identity {
    if let name { return .named(name) }
    if let udid { return .udid(udid) }
    return .place(machine: machineID.map { ByteString($0) }, layout, root: root)
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
