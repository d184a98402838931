internal import SystemIO

extension DeviceFinder {
  /// What a folder was found to be.
  enum Place {
    case coreSimulator(SimulatorPlace)
    /// The folder `.var/app`.
    case flatpakApps
    /// A home with `.var/app` in it.
    case flatpakHome
    /// The folder of all snaps' data.
    case snapFolder
    /// A home with such a folder of that name in it.
    case snapHome(ByteString)
    /// A home with `Library/Containers` in it.
    case macOSHome
    /// The folder `Library/Containers` of this home.
    case macOSContainers(ByteString)
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
    guard let layout else {
      for layout in Layout.allCases {
        if let place = Self.place(of: folder, layout, isAsked: false) { return place }
      }
      throw ModelError(
        .noDevice, "find a device in", on: asked, "no known layout of apps is in this folder",
        hint: "name another with '--root', keep a plain folder with '--layout folder', or make a "
          + "sample device with 'sandboxctl sample DIR'")
    }
    if let place = Self.place(of: folder, layout, isAsked: true) { return place }
    let (lacks, hint) = Self.refusal(layout)
    throw ModelError(
      .noDevice, "find a device of the layout \(layout.rawValue) in", on: asked, lacks, hint: hint)
  }

  /// The layouts that a folder has by the looks of it.
  static func layouts(of folder: borrowing Folder) -> [Layout] {
    var layouts: [Layout] = []
    for layout in Layout.allCases where place(of: folder, layout, isAsked: false) != nil {
      layouts.append(layout)
    }
    return layouts
  }

  /// Where in a folder a device of a layout is.
  ///
  /// - Parameter isAsked: whether the user says that it is one, so that less has to tell it.
  static func place(
    of folder: borrowing Folder, _ layout: Layout, isAsked: Bool
  ) -> Place? {
    let parts = folder.path.components
    switch layout {
    case .coreSimulator: return simulatorPlace(of: folder).map { .coreSimulator($0) }
    case .flatpak:
      if has(".var/app", in: folder) { return .flatpakHome }
      return isFlatpak(folder) ? .flatpakApps : nil
    case .snap:
      if isSnap(folder) || isAsked && isSnapFolder(parts) { return .snapFolder }
      return snapFolders.first { isSnapHome(folder, $0, isAsked: isAsked) }.map { .snapHome($0) }
    case .macOS:
      if parts.suffix(2) == ["Library", "Containers"] {
        return .macOSContainers(path(parts.dropLast(2)))
      }
      let places: [ByteString] = ["Library/Containers", "Library/Group Containers"]
      return places.contains { has($0, in: folder) } ? .macOSHome : nil
    case .folder: return isAsked ? .folder : nil
    }
  }

  /// Why a folder is no device of a layout, and what to name.
  private static func refusal(_ layout: Layout) -> (reason: String, hint: String) {
    switch layout {
    case .coreSimulator:
      (
        "it has no 'data' folder beside a device.plist, no 'Containers' folder, and no "
          + "'private/var/mobile/Containers'",
        "name a simulator's folder, its 'data' folder, or the root of an iOS file system"
      )
    case .flatpak:
      (
        "it has no '.var/app' folder, and its folders are not those of Flatpak apps",
        "name a home folder or its '.var/app'"
      )
    case .snap:
      (
        "it has no 'snap' folder, and its folders are not those of snaps",
        "name a home folder or its 'snap'"
      )
    case .macOS:
      (
        "it has no 'Library/Containers' and no 'Library/Group Containers'",
        "name the home folder of a macOS user"
      )
    case .folder: ("it is no folder", "name a folder")
    }
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

  /// Whether a path ends as that of snapd's folder in a home does.
  private static func isSnapFolder(_ parts: [ByteString]) -> Bool {
    snapFolders.contains { parts.suffix($0.components.count) == $0.components[...] }
  }

  /// A home with snapd's folder of that name in it; the name alone is not enough unless it is asked
  /// for, because a folder `snap` may be anybody's.
  private static func isSnapHome(
    _ home: borrowing Folder, _ name: ByteString, isAsked: Bool
  ) -> Bool {
    guard let folder = try? Folder.open(path: home.path.appending(name)) else { return false }
    return isAsked || isSnap(folder)
  }

  /// A folder with a snap's data in it: `common` beside a link `current` to a revision; one of both is
  /// enough in a folder that has the name of snapd's.
  private static func isSnap(_ folder: borrowing Folder) -> Bool {
    let isNamed = isSnapFolder(folder.path.components)
    for name in (try? folder.names()) ?? [] {
      guard let snap = try? folder.folder(name) else { continue }
      let hasCommon = has("common", in: snap)
      let hasCurrent = (try? snap.target(of: SnapHome.current))?.lastComponent.map {
        SnapHome.isRevision($0)
      }
      if hasCommon && hasCurrent == true || isNamed && (hasCommon || hasCurrent == true) {
        return true
      }
    }
    return false
  }

  /// Whether something is at a path below the folder, links followed.
  private static func has(_ path: ByteString, in folder: borrowing Folder) -> Bool {
    (try? folder.statusFollowing(path)) != nil
  }
}
