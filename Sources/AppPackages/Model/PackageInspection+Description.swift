internal import DeviceDiscovery
package import SandboxModel
internal import SystemIO

extension PackageInspection {
  /// Returns the description of the package from the files added.
  ///
  /// - Throws: `package` if the app or an extension has no valid identifier.
  package consuming func description(size: PackageSize) throws(ModelError) -> AppPackage {
    guard let app = parts.first else { throw fault("its bundle '\(bundle)' was not read") }
    let identifier = try identifier(of: app)
    var groups: [(group: BundleIdentifier, source: App.EntitlementSource)] = []
    let own = entitlements(of: app)
    take(own, of: app, &groups)
    var extensions: [App.Extension] = []
    for part in parts.dropFirst() {
      extensions.append(try appExtension(part, of: identifier))
      take(entitlements(of: part), of: part, &groups)
    }
    let migration = migration(for: identifier, app)
    return AppPackage(
      origin: origin, bundleDirectory: bundle, shape: app.shape, identifier: identifier,
      displayName: app.info.displayName, version: app.info.version, build: app.info.build,
      extensions: extensions.sorted { ($0.identifier, $0.path) < ($1.identifier, $1.path) },
      groups: Survey.memberships(groups), hasKnownGroups: own.isKnown, migration: migration,
      size: size, findings: survey.findings.sorted())
  }

  private func identifier(of part: Part) throws(ModelError) -> BundleIdentifier {
    let file = infoPath(of: part)
    guard let identifier = part.info.identifier else {
      let found = survey.findings.first {
        $0.path == file && [.wrongValue, .unusableName].contains($0.code)
      }
      throw fault(
        "its '\(file)' does not identify an app: "
          + "\(found?.reason ?? "its CFBundleIdentifier is empty")",
        hint: "set CFBundleIdentifier to an identifier such as com.example.app")
    }
    if let reason = identifier.fault {
      throw fault(
        "its '\(file)' has the CFBundleIdentifier '\(identifier)', which is invalid: \(reason)",
        hint: "set CFBundleIdentifier to an identifier such as com.example.app")
    }
    return identifier
  }

  private mutating func appExtension(
    _ part: Part, of app: BundleIdentifier
  ) throws(ModelError) -> App.Extension {
    let identifier = try identifier(of: part)
    if !app.isPrefix(of: identifier) {
      survey.warn(
        .contradiction, at: infoPath(of: part),
        because: "the extension's identifier '\(identifier)' does not begin with '\(app).'")
    }
    return App.Extension(
      identifier: identifier, displayName: part.info.displayName, version: part.info.version,
      build: part.info.build, path: part.bundle)
  }

  private func infoPath(of part: Part) -> ByteString {
    let directory =
      part.shape == .contents ? part.bundle.appending(BundleShape.contentsDirectory) : part.bundle
    return directory.appending(PackageLocations.info)
  }

  /// Returns the entitlements of a bundle, in the order given by `Entitlements`.
  private mutating func entitlements(of part: Part) -> Entitlements {
    var entitlements = Entitlements()
    for found in part.facts?.entitlements ?? [] {
      survey.add(
        found.propertyList, from: found.source, as: part.program ?? part.bundle, to: &entitlements)
    }
    let archived = part.programs.appending(PackageLocations.archived)
    if let bytes = files[archived] {
      survey.add(bytes, from: .archivedEntitlements, as: archived, to: &entitlements)
    }
    let profile = part.programs.appending(PackageLocations.profile)
    if let bytes = files[profile] { survey.add(profile: bytes, as: profile, to: &entitlements) }
    return entitlements
  }

  /// Adds the groups with valid identifiers: a wildcard in a profile (`TEAM.*`) is not a group.
  private mutating func take(
    _ entitlements: Entitlements, of part: Part,
    _ groups: inout [(group: BundleIdentifier, source: App.EntitlementSource)]
  ) {
    for (group, source) in entitlements.groups {
      if let reason = group.fault {
        survey.warn(
          .wrongValue, at: part.bundle,
          because: "\(source.rawValue) names the group '\(group)', which is excluded: \(reason)")
      } else {
        groups.append((group, source))
      }
    }
  }

  private mutating func migration(
    for app: BundleIdentifier, _ part: Part
  ) -> ContainerMigration? {
    let path = PackageLocations.migration.reduce(bundle.appending(BundleShape.contentsDirectory)) {
      $0.appending($1)
    }
    guard part.shape == .contents, let bytes = files[path] else { return nil }
    do {
      return try ContainerMigration(reading: bytes, for: app)
    } catch {
      survey.warn(.unusableFile, at: path, because: "it is ignored: \(error.reason)")
      return nil
    }
  }
}
