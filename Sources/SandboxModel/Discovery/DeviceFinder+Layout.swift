internal import SystemIO

extension DeviceFinder {
  /// What a folder was found to be.
  enum Place {
    case coreSimulator(SimulatorPlace)
    /// The folder `.var/app`.
    case flatpakApps
    /// A home with `.var/app` in it.
    case flatpakHome
    case folder
  }

  /// The three shapes of the layout coresimulator.
  enum SimulatorPlace {
    /// A simulator's folder: `device.plist` beside `data`.
    case device
    /// A simulator's `data` folder.
    case data
    /// The file system of an iOS device.
    case fileSystem
  }

  /// Finds out by looking, or checks that the folder has the layout that was asked for.
  func place(of folder: borrowing Folder, asked: ByteString) throws(ModelError) -> Place {
    switch layout {
    case .folder: return .folder
    case .coreSimulator:
      if let place = Self.simulatorPlace(of: folder) { return .coreSimulator(place) }
      throw ModelError(
        .noDevice, "find a device of the layout coresimulator in", on: asked,
        "it has no 'data' folder beside a device.plist, no 'Containers' folder, and no "
          + "'private/var/mobile/Containers'",
        hint: "name a simulator's folder, its 'data' folder, or the root of an iOS file system")
    case .flatpak:
      if Self.has(".var/app", in: folder) { return .flatpakHome }
      if Self.isFlatpak(folder) { return .flatpakApps }
      throw ModelError(
        .noDevice, "find a device of the layout flatpak in", on: asked,
        "it has no '.var/app' folder, and its folders are not those of Flatpak apps",
        hint: "name a home folder or its '.var/app'")
    case nil: break
    }
    if let place = Self.simulatorPlace(of: folder) { return .coreSimulator(place) }
    if Self.has(".var/app", in: folder) { return .flatpakHome }
    if Self.isFlatpak(folder) { return .flatpakApps }
    throw ModelError(
      .noDevice, "find a device in", on: asked, "no known layout of apps is in this folder",
      hint: "name another with '--root', keep a plain folder with '--layout folder', or make a "
        + "sample device with 'sandboxctl sample DIR'")
  }

  static func simulatorPlace(of folder: borrowing Folder) -> SimulatorPlace? {
    if has("device.plist", in: folder), has("data", in: folder) { return .device }
    let classes: [ByteString] = ["Containers/Bundle", "Containers/Data", "Containers/Shared"]
    if classes.contains(where: { has($0, in: folder) }) { return .data }
    let bases: [ByteString] = [
      "private/var/mobile/Containers", "private/var/containers/Bundle/Application",
    ]
    return bases.contains { has($0, in: folder) } ? .fileSystem : nil
  }

  /// A folder that ends in `.var/app`, or one whose folders are named as apps are and have what
  /// Flatpak makes in them.
  private static func isFlatpak(_ folder: borrowing Folder) -> Bool {
    let parts = folder.path.components
    if parts.suffix(2) == [".var", "app"] { return true }
    let names = (try? folder.names()) ?? []
    return names.contains { name in
      name.components.count == 1 && name.bytes.count { $0 == UInt8(ascii: ".") } >= 2
        && name.bytes.first != UInt8(ascii: ".")
        && (["data", "config", "cache"] as [ByteString]).allSatisfy {
          has(name.appending($0), in: folder)
        }
    }
  }

  /// Whether something is at a path below the folder, links followed.
  private static func has(_ path: ByteString, in folder: borrowing Folder) -> Bool {
    (try? folder.statusFollowing(path)) != nil
  }
}
