public import SystemIO

/// Looks at a directory and finds the device that it is: its layout, apps and containers.
///
/// Nothing is changed and nothing stays open. One thing that cannot be read never hides the others:
/// it becomes a finding. Only a root that is no device throws.
public struct DeviceFinder: Sendable {
  /// The layout to look for; nil to find it by looking.
  public var layout: Layout?
  /// The name that the user gives the device, which then is its identity.
  public var name: ByteString?
  /// This machine's id, part of the identity of devices that have none of their own.
  public var machineID: String?
  /// The user's Flatpak installation; nil for the one of the home that the device is in.
  public var userFlatpak: ByteString?
  /// The system's Flatpak installation; nil to look at none.
  public var systemFlatpak: ByteString?
  /// The root of the system that the home belongs to, where a snap's system data and what is
  /// installed are; nil to tell it by the home's path.
  public var systemRoot: ByteString?

  /// Makes a finder for this machine.
  public init(
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

  /// Finds the device at `root`, a path that may lead through links.
  ///
  /// - Throws: `system` when the directory cannot be opened, `noDevice` when it is no device, or none
  ///   of the layout that was asked for.
  public func find(_ root: ByteString) throws(ModelError) -> Device {
    do {
      let real = try Host.realPath(root)
      let directory = try Directory.open(path: real)
      let device = try device(in: directory, try place(of: directory, asked: root), asked: root)
      return layout == nil ? device.noting(others: Self.layouts(of: directory)) : device
    } catch let error as SystemError {
      throw ModelError(
        .system, "find a device in", on: error.path, error.reason, hint: error.hint)
    } catch let error as ModelError {
      throw error
    } catch {
      throw ModelError(.noDevice, "look at the device", on: root, "\(error)")
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

  /// The device that a plain directory will be that is not there yet, at an absolute path without links.
  public func missingDirectory(_ path: ByteString) -> Device { plain(path) }

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

  func identity(_ layout: Layout, _ root: ByteString, udid: ByteString? = nil) -> DeviceIdentity {
    if let name { return .named(name) }
    if let udid { return .udid(udid) }
    return .place(machine: machineID.map { ByteString($0) }, layout, root: root)
  }
}

extension Device {
  /// The device with a note of each other layout that its directory has, too.
  fileprivate func noting(others layouts: [Layout]) -> Device {
    var device = self
    for other in layouts where other != layout {
      device.findings.append(
        Finding(
          .note, .anotherLayout, root,
          "the directory has the layout \(other.rawValue), too: '--layout \(other.rawValue)' is that device"
        ))
    }
    device.findings.sort()
    return device
  }

  /// Finds the device at `root` on this machine, its layout by looking unless it is given.
  ///
  /// - Throws: what `DeviceFinder.find(_:)` throws.
  public static func find(root: ByteString, layout: Layout? = nil) throws(ModelError) -> Device {
    try DeviceFinder(layout: layout).find(root)
  }
}
