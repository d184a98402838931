internal import SystemIO

extension DeviceFinder {
  /// What a directory was found to be.
  enum Location {
    case coreSimulator(SimulatorLocation)
    /// The directory `.var/app`.
    case flatpakApps
    /// A home with `.var/app` in it.
    case flatpakHome
    /// The directory of all snaps' data.
    case snapDirectory
    /// A home with such a directory of that name in it.
    case snapHome(ByteString)
    /// A home with `Library/Containers` in it.
    case macOSHome
    /// The directory `Library/Containers` of this home.
    case macOSContainers(ByteString)
    case folder
  }

  /// The three shapes of the layout coresimulator.
  enum SimulatorLocation {
    /// A simulator's folder: `device.plist` beside `data`.
    case device
    /// A simulator's `data` directory.
    case data
    /// The file system of an iOS device.
    case fileSystem
  }

  /// Finds out by looking, or checks that the directory has the layout that was asked for.
  func place(of directory: borrowing Directory, asked: ByteString) throws(ModelError) -> Location {
    guard let layout else {
      for layout in Layout.allCases {
        if let place = Self.place(of: directory, layout, isAsked: false) { return place }
      }
      throw ModelError(
        .noDevice, "find a device in", on: asked, "no known layout of apps is in this directory",
        hint:
          "name another with '--root', keep a plain directory with '--layout folder', or make a "
          + "sample device with 'sandboxctl sample DIR'")
    }
    if let place = Self.place(of: directory, layout, isAsked: true) { return place }
    let (lacks, hint) = Self.refusal(layout)
    throw ModelError(
      .noDevice, "find a device of the layout \(layout.rawValue) in", on: asked, lacks, hint: hint)
  }

  /// The layouts that a directory has by the looks of it.
  static func layouts(of directory: borrowing Directory) -> [Layout] {
    var layouts: [Layout] = []
    for layout in Layout.allCases where place(of: directory, layout, isAsked: false) != nil {
      layouts.append(layout)
    }
    return layouts
  }

  /// Where in a directory a device of a layout is.
  ///
  /// - Parameter isAsked: whether the user says that it is one, so that less has to tell it.
  static func place(
    of directory: borrowing Directory, _ layout: Layout, isAsked: Bool
  ) -> Location? {
    let parts = directory.path.components
    switch layout {
    case .coreSimulator: return simulatorLocation(of: directory).map { .coreSimulator($0) }
    case .flatpak:
      if has(".var/app", in: directory) { return .flatpakHome }
      return isFlatpak(directory) ? .flatpakApps : nil
    case .snap:
      if isSnap(directory) || isAsked && isSnapDirectory(parts) { return .snapDirectory }
      return snapDirectories.first { isSnapHome(directory, $0, isAsked: isAsked) }.map {
        .snapHome($0)
      }
    case .macOS:
      if parts.suffix(2) == ["Library", "Containers"] {
        return .macOSContainers(path(parts.dropLast(2)))
      }
      let places: [ByteString] = ["Library/Containers", "Library/Group Containers"]
      return places.contains { has($0, in: directory) } ? .macOSHome : nil
    case .folder: return isAsked ? .folder : nil
    }
  }

  /// Why a directory is no device of a layout, and what to name.
  private static func refusal(_ layout: Layout) -> (reason: String, hint: String) {
    switch layout {
    case .coreSimulator:
      (
        "it has no 'data' directory beside a device.plist, no 'Containers' directory, and no "
          + "'private/var/mobile/Containers'",
        "name a simulator's directory, its 'data' directory, or the root of an iOS file system"
      )
    case .flatpak:
      (
        "it has no '.var/app' directory, and its directories are not those of Flatpak apps",
        "name a home directory or its '.var/app'"
      )
    case .snap:
      (
        "it has no 'snap' directory, and its directories are not those of snaps",
        "name a home directory or its 'snap'"
      )
    case .macOS:
      (
        "it has no 'Library/Containers' and no 'Library/Group Containers'",
        "name the home directory of a macOS user"
      )
    case .folder: ("it is no directory", "name a directory")
    }
  }

  static func simulatorLocation(of directory: borrowing Directory) -> SimulatorLocation? {
    if has("device.plist", in: directory), has("data", in: directory) { return .device }
    let classes: [ByteString] = ["Containers/Bundle", "Containers/Data", "Containers/Shared"]
    if classes.contains(where: { has($0, in: directory) }) { return .data }
    let bases: [ByteString] = [
      "private/var/mobile/Containers", "private/var/containers/Bundle/Application",
    ]
    return bases.contains { has($0, in: directory) } ? .fileSystem : nil
  }

  /// A directory that ends in `.var/app`, or one whose directories are named as apps are and have what
  /// Flatpak makes in them.
  private static func isFlatpak(_ directory: borrowing Directory) -> Bool {
    let parts = directory.path.components
    if parts.suffix(2) == [".var", "app"] { return true }
    let names = (try? directory.names()) ?? []
    return names.contains { name in
      name.components.count == 1 && name.bytes.count { $0 == UInt8(ascii: ".") } >= 2
        && name.bytes.first != UInt8(ascii: ".")
        && (["data", "config", "cache"] as [ByteString]).allSatisfy {
          has(name.appending($0), in: directory)
        }
    }
  }

  /// Whether a path ends as that of snapd's directory in a home does.
  private static func isSnapDirectory(_ parts: [ByteString]) -> Bool {
    snapDirectories.contains { parts.suffix($0.components.count) == $0.components[...] }
  }

  /// A home with snapd's directory of that name in it; the name alone is not enough unless it is asked
  /// for, because a directory `snap` may be anybody's.
  private static func isSnapHome(
    _ home: borrowing Directory, _ name: ByteString, isAsked: Bool
  ) -> Bool {
    guard let directory = try? Directory.open(path: home.path.appending(name)) else { return false }
    return isAsked || isSnap(directory)
  }

  /// A directory with a snap's data in it: `common` beside a link `current` to a revision; one of both is
  /// enough in a directory that has the name of snapd's.
  private static func isSnap(_ directory: borrowing Directory) -> Bool {
    let isNamed = isSnapDirectory(directory.path.components)
    for name in (try? directory.names()) ?? [] {
      guard let snap = try? directory.directory(name) else { continue }
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

  /// Whether something is at a path below the directory, links followed.
  private static func has(_ path: ByteString, in directory: borrowing Directory) -> Bool {
    (try? directory.statusFollowing(path)) != nil
  }
}
