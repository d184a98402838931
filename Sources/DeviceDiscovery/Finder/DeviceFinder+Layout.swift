internal import SandboxModel
internal import SystemIO

extension DeviceFinder {
  /// The location of a device in a directory.
  enum DirectoryForm {
    case coreSimulator(SimulatorForm)
    /// The directory is `.var/app`.
    case flatpakApps
    /// The directory is a home directory with `.var/app`.
    case flatpakHome
    /// The directory contains the data of all snaps.
    case snapDirectory
    /// The directory is a home directory; the associated value is the path of its snap directory.
    case snapHome(ByteString)
    /// The directory is a home directory with `Library/Containers`.
    case macOSHome
    /// The directory is `Library/Containers` of the given home directory.
    case macOSContainers(ByteString)
    /// The directory contains the data of all Android apps.
    case androidApps
    /// The directory contains that directory, at the path of the associated value.
    case androidSystem(ByteString)
    /// The directory is the root of a system with units.
    case systemdRoot
    /// The directory is a home directory with base directories.
    case xdgHome
    case folder
  }

  /// The forms of the layout coresimulator.
  enum SimulatorForm {
    /// A simulator's directory: `device.plist` beside `data`.
    case device
    /// A simulator's `data` directory.
    case data
    /// The file system of an iOS device.
    case fileSystem
    /// An `.xcappdata` bundle with the data container of one app.
    case appData
  }

  /// Detects the layout of the directory, or checks that it has the requested one.
  func form(of directory: borrowing Directory, asked: ByteString) throws(ModelError)
    -> DirectoryForm
  {
    guard let layout else {
      for layout in Layout.allCases {
        if let form = Self.form(of: directory, layout, isAsked: false) { return form }
      }
      throw ModelError(
        .noDevice, "find a device in", on: asked, reason: "this directory has no known app layout",
        hint:
          "specify another with '--root', use a plain directory with '--layout folder', or create "
          + "a sample device with 'sandboxctl sample DIR'")
    }
    if let form = Self.form(of: directory, layout, isAsked: true) { return form }
    let (lacks, hint) = Self.refusal(layout)
    throw ModelError(
      .noDevice, "find a device with the layout \(layout.rawValue) in", on: asked, reason: lacks,
      hint: hint)
  }

  /// Returns the layouts that the directory appears to have.
  static func layouts(of directory: borrowing Directory) -> [Layout] {
    var layouts: [Layout] = []
    for layout in Layout.allCases where form(of: directory, layout, isAsked: false) != nil {
      layouts.append(layout)
    }
    return layouts
  }

  /// Returns the location of a device with a layout in a directory.
  ///
  /// - Parameter isAsked: Whether the user requested the layout, so that fewer signs suffice.
  static func form(
    of directory: borrowing Directory, _ layout: Layout, isAsked: Bool
  ) -> DirectoryForm? {
    let parts = directory.path.components
    switch layout {
    case .coreSimulator: return simulatorForm(of: directory).map { .coreSimulator($0) }
    case .flatpak:
      if has(".var/app", in: directory) { return .flatpakHome }
      return isFlatpak(directory) ? .flatpakApps : nil
    case .snap:
      if isSnap(directory) || isAsked && isSnapDirectory(parts) { return .snapDirectory }
      return SnapFinder.directories.first { isSnapHome(directory, $0, isAsked: isAsked) }.map {
        .snapHome($0)
      }
    case .macOS:
      if parts.suffix(2) == ["Library", "Containers"] {
        return .macOSContainers(path(parts.dropLast(2)))
      }
      let paths: [ByteString] = ["Library/Containers", "Library/Group Containers"]
      return paths.contains { has($0, in: directory) } ? .macOSHome : nil
    case .android: return androidForm(of: directory, isAsked: isAsked)
    case .systemd:
      let isSystem = UnitFiles.directories.contains { has($0, in: directory) }
      return isSystem && (isAsked || has("var/lib", in: directory)) ? .systemdRoot : nil
    case .xdg:
      return XDGFinder.isHome(isAsked: isAsked) { has($0, in: directory) } ? .xdgHome : nil
    case .folder: return isAsked ? .folder : nil
    }
  }

  /// Returns the location of the data of Android apps. Unless the layout was requested, the name of
  /// the directory is not sufficient: some of the directories must be those of packages.
  private static func androidForm(
    of directory: borrowing Directory, isAsked: Bool
  ) -> DirectoryForm? {
    let isNamed = directory.path.components.suffix(2) == AndroidFinder.directories[...]
    if isAsked && isNamed || AndroidFinder.isPackageDirectory(directory) { return .androidApps }
    // The root of a file system, or its directory `data`.
    let paths: [ByteString] =
      directory.path.lastComponent == "data" ? ["data", "data/data"] : ["data/data"]
    for path in paths {
      guard let apps = try? Directory.open(path: directory.path.appending(path)) else { continue }
      if isAsked || AndroidFinder.isPackageDirectory(apps) { return .androidSystem(path) }
    }
    return nil
  }

  /// Returns the reason why a directory is not a device with a layout, and a hint.
  private static func refusal(_ layout: Layout) -> (reason: String, hint: String) {
    switch layout {
    case .coreSimulator:
      (
        "it has no 'data' directory next to a device.plist, no 'Containers' directory, no "
          + "'private/var/mobile/Containers' and no 'AppData'",
        "specify a simulator's directory, its 'data' directory, the root of an iOS file system, or "
          + "an .xcappdata"
      )
    case .flatpak:
      (
        "it has no '.var/app' directory, and its directories are not those of Flatpak apps",
        "specify a home directory or its '.var/app'"
      )
    case .snap:
      (
        "it has no 'snap' directory, and its directories are not those of snaps",
        "specify a home directory or its 'snap'"
      )
    case .macOS:
      (
        "it has no 'Library/Containers' and no 'Library/Group Containers'",
        "specify the home directory of a macOS user"
      )
    case .android:
      (
        "it has no 'data/data' directory, and its directories are not those of Android packages",
        "specify the root of a device's file system, its 'data' or its 'data/data'"
      )
    case .systemd:
      (
        "it has no directory of unit files such as 'usr/lib/systemd/system'",
        "specify the root of a system, such as '/'"
      )
    case .xdg:
      (
        "it has no '.config', '.local/share', '.local/state' or '.cache'",
        "specify a home directory"
      )
    case .folder: ("it is not a directory", "specify a directory")
    }
  }

  static func simulatorForm(of directory: borrowing Directory) -> SimulatorForm? {
    if has("device.plist", in: directory), has("data", in: directory) { return .device }
    let classes: [ByteString] = ["Containers/Bundle", "Containers/Data", "Containers/Shared"]
    if classes.contains(where: { has($0, in: directory) }) { return .data }
    let bases: [ByteString] = [
      "private/var/mobile/Containers", "private/var/containers/Bundle/Application",
    ]
    if bases.contains(where: { has($0, in: directory) }) { return .fileSystem }
    let isNamed = directory.path.hasSuffix(CoreSimulatorFinder.appDataSuffix)
    let isAppData =
      (isNamed || has(CoreSimulatorFinder.appDataInfo, in: directory))
      && has(CoreSimulatorFinder.appData, in: directory)
    return isAppData ? .appData : nil
  }

  /// Whether a directory is `.var/app`, or contains directories with app identifiers as names and
  /// Flatpak's subdirectories.
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

  /// Whether a path ends with one of `SnapFinder.directories`.
  private static func isSnapDirectory(_ parts: [ByteString]) -> Bool {
    SnapFinder.directories.contains { parts.suffix($0.components.count) == $0.components[...] }
  }

  /// Whether a home directory has a snap directory with the given name. Unless the layout was
  /// requested, the name is not sufficient, because a directory `snap` can have other purposes.
  /// Links are followed because only the choice of the layout depends on the result: the device's
  /// finder resolves the directory with the links that the user follows.
  private static func isSnapHome(
    _ home: borrowing Directory, _ name: ByteString, isAsked: Bool
  ) -> Bool {
    guard let directory = try? Directory.open(path: home.path.appending(name)) else { return false }
    return isAsked || isSnap(directory)
  }

  /// Whether a directory contains a snap's data: `common` beside a link `current` to a revision.
  /// One of the two suffices if the directory has the name of snapd's directory.
  private static func isSnap(_ directory: borrowing Directory) -> Bool {
    let isNamed = isSnapDirectory(directory.path.components)
    for name in (try? directory.names()) ?? [] {
      guard let snap = try? directory.directory(name) else { continue }
      let hasCommon = has("common", in: snap)
      let hasCurrent = (try? snap.target(of: SnapFinder.Home.current))?.lastComponent.map {
        SnapFinder.Home.isRevision($0)
      }
      if hasCommon && hasCurrent == true || isNamed && (hasCommon || hasCurrent == true) {
        return true
      }
    }
    return false
  }

  /// Whether an entry exists at a path below the directory; follows links.
  private static func has(_ path: ByteString, in directory: borrowing Directory) -> Bool {
    (try? directory.statusFollowing(path)) != nil
  }
}
