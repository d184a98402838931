internal import ArchiveStore
internal import DeviceDiscovery
package import DeviceScan
internal import DeviceTransaction
package import PolicyEngine
package import SandboxModel
package import SystemIO

/// The device that a migration changes: its journal, its locks and its trash, and the containers to
/// save first.
///
/// It is the user's Flatpak or snap device if everything goes into it, and the home directory with
/// the layout macos for a macOS app. Otherwise it is the home directory itself with the layout xdg,
/// whose containers are the apps' base directories; other directories of the home, such as
/// `.mozilla`, are in no container, and nothing in them is replaced.
package struct MigrationTarget: Sendable {
  /// The device.
  package let device: Device
  /// The directory in which entries are staged, relative to the home directory; empty for the home
  /// directory itself. All destinations are in it.
  let base: ByteString
  private let end: MigrationEnd
  /// The destinations of new entries, relative to the home directory, none within another.
  let destinations: [ByteString]

  /// Finds the device for a planned migration. Changes nothing.
  ///
  /// - Throws: `ModelError` if the home directory cannot be read.
  package static func find(for migration: AppMigration) throws -> MigrationTarget {
    let end = migration.route.to
    let destinations = try topmostDestinations(of: migration)
    if let directory = end.packaging.deviceDirectory,
      destinations.allSatisfy({ $0.isWithin(directory) && $0 != directory })
    {
      let root = end.home.appending(directory)
      let device = try Device.find(root: root, layout: end.packaging.layout)
      guard device.root == root else {
        throw OperationError(
          .failed, code: .changedSincePlan, "migrate", subject: end.app,
          reason: "'\(root)' was replaced since the plan was made", hint: "try again")
      }
      let isPresent = (try? Directory.open(resolved: end.home.appending(end.container))) != nil
      return MigrationTarget(
        device: device, base: isPresent ? end.container : directory, end: end,
        destinations: destinations)
    }
    let layout = end.packaging == .macOS ? Layout.macOS : .xdg
    let isInContainer =
      layout == .macOS
      && destinations.allSatisfy { $0.isWithin(end.container) && $0 != end.container }
    return MigrationTarget(
      device: try homeDevice(end.home, layout), base: isInContainer ? end.container : "", end: end,
      destinations: destinations)
  }

  /// Returns a home directory as a device with the layout xdg or macos. A new home without base
  /// directories or containers is a device without apps.
  private static func homeDevice(
    _ home: ByteString, _ layout: Layout
  ) throws(ModelError) -> Device {
    do throws(ModelError) {
      return try Device.find(root: home, layout: layout)
    } catch {
      guard error.code == .noDevice else { throw error }
      return Device(
        root: home, layout: layout, identity: DeviceFinder(layout: layout).identity(layout, home),
        apps: [], containers: [], findings: [])
    }
  }

  /// Returns the topmost new entries of a plan: each is put in place by one rename.
  private static func topmostDestinations(of migration: AppMigration) throws(OperationError)
    -> [ByteString]
  {
    do throws(SystemError) {
      let home = try MigrationHome(migration.route.to)
      var (found, known): (Set<ByteString>, [ByteString: Bool]) = ([], [:])
      for move in migration.plan.moves {
        var path = home.real(move.destination)
        while !path.parent.isEmpty {
          let above = path.parent
          if known[above] == nil { known[above] = try home.entry(at: above) != nil }
          if known[above] == true { break }
          path = above
        }
        found.insert(path)
      }
      return found.sorted()
    } catch { throw OperationError(error) }
  }

  /// The logical path that is locked.
  package var subject: ByteString { end.subject }

  /// Scans the containers that the migration adds entries to, and those of its app.
  ///
  /// - Parameters:
  ///   - policy: The policy for the device.
  ///   - options: The options of the scan.
  package func scan(policy: CompiledPolicy, options: ScanOptions) -> DeviceScan {
    let paths = destinations.map { end.home.appending($0) }
    return DeviceScan.run(device, policy: policy, options: options) { container in
      container.owner?.bytes == end.app
        || paths.contains { $0.isWithin(container.absolutePath) && container.member == nil }
    }
  }

  /// Returns the signs that the app is running: files of the scanned containers in use, and the
  /// platform's register. Outside sandboxes also files in use at the app's other places.
  package func signsOfUse(
    in scan: DeviceScan, of migration: AppMigration
  ) -> [RunningApps.Sign] {
    let signs = RunningApps.signs(in: scan)
    if !base.isEmpty { return signs }
    let known = Set(signs.map(\.process))
    let tables = (migration.route.table?.places ?? []).compactMap { place in
      place.path(in: end.packaging)?.inHome(of: end)
    }
    let paths = Set(tables + destinations.map(\.parent)).filter {
      !$0.isEmpty && !Self.isShared($0)
    }
    let present = paths.sorted().compactMap { try? Host.realPath(end.home.appending($0)) }
    return signs
      + RunningApps.signs(of: end.app, below: present).filter { !known.contains($0.process) }
  }

  /// Whether a home directory has data of many apps, so that a file in use there proves nothing.
  private static func isShared(_ path: ByteString) -> Bool {
    let shared: [ByteString] = [
      ".cache", ".config", ".local", ".local/share", ".local/state", ".var", ".var/app", "snap",
      "Library", "Library/Application Support", "Library/Containers", "Library/Preferences",
    ]
    return shared.contains(path)
  }
}

extension AppMigration {
  /// Returns the signs that the app is running on either side, for which the migration would be
  /// refused; none if there is nothing to copy.
  ///
  /// - Parameter compile: compiles the policy for the target's layout.
  package func signsOfUse(compile: (Layout) throws -> CompiledPolicy) throws -> [RunningApps.Sign] {
    if isIdle { return [] }
    let target = try MigrationTarget.find(for: self)
    let scan = target.scan(
      policy: try compile(target.device.layout), options: ScanOptions(destination: .unrestricted))
    return target.signsOfUse(in: scan, of: self) + signsOfUseInSource
  }

  /// Returns the signs that the app is running in the source: its files could change while they are
  /// copied.
  var signsOfUseInSource: [RunningApps.Sign] {
    let paths = route.sources.map { route.from.home.appending($0) }.compactMap { path in
      try? Host.realPath(path)
    }
    return RunningApps.signs(of: route.from.app, below: paths)
  }
}

extension MigrationEnd {
  /// The logical path that operations on the app lock.
  var subject: ByteString { LogicalContainer.data(LogicalName(app)).prefix.subject }
}

extension Packaging {
  /// The directory of a home that is a device with the apps of this form; nil if there is none.
  package var deviceDirectory: ByteString? {
    switch self {
    case .flatpak: ".var/app"
    case .snap: "snap"
    case .host, .deb, .macOS: nil
    }
  }

  /// The layout of a home with apps of this form.
  package var layout: Layout {
    switch self {
    case .flatpak: .flatpak
    case .snap: .snap
    case .macOS: .macOS
    case .host, .deb: .xdg
    }
  }

  /// The form of the apps in devices of a layout; nil if apps have only one form there.
  package init?(ofDevicesIn layout: Layout) {
    switch layout {
    case .flatpak: self = .flatpak
    case .snap: self = .snap
    case .xdg: self = .host
    default: return nil
    }
  }
}
