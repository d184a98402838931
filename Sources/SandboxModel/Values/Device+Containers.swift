package import SystemIO

extension Device {
  /// Returns the containers of an app without shared groups, sorted by logical path.
  package func containers(of app: App) -> [Container] {
    containers.filter { $0.owner == app.identifier }
  }

  /// Returns the group containers that an app may use, both known and guessed.
  package func groups(of app: App) -> [(container: Container, basis: GroupMembership.Basis)] {
    containers.compactMap { container in
      guard container.kind == .group,
        let found = app.groups.first(where: { $0.group == container.identifier })
      else { return nil }
      return (container, found.basis)
    }
  }

  /// Returns the apps that belong to a group's container, with the source of each membership.
  package func members(of group: Container) -> [(app: App, basis: GroupMembership.Basis)] {
    apps.compactMap { app in
      guard let found = app.groups.first(where: { $0.group == group.identifier }) else {
        return nil
      }
      return (app, found.basis)
    }
  }

  /// The containers without a known app, except groups and directories.
  package var containersWithoutApp: [Container] {
    containers.filter { $0.owner == nil && $0.kind != .group && $0.kind != .folder }
  }

  /// Returns the container with a logical name, or nil if this device has none.
  package func container(_ logical: LogicalContainer) -> Container? {
    index.place(of: logical).map { containers[$0] }
  }
}

extension Device {
  /// Returns the container of a logical path and the path in it.
  ///
  /// - Throws: `logicalPath` if the path does not name a container, or this device does not have
  ///   it, or the path leads to an entry of its directory that belongs to another container.
  package func resolve(
    _ path: LogicalPath
  ) throws(ModelError) -> (container: Container, inner: ByteString) {
    guard let (logical, inner) = path.place else {
      throw ModelError(
        .logicalPath, "find", on: path.bytes, reason: "it does not name a container",
        hint: "write it as 'apps/com.example.app/data/Documents'")
    }
    guard let container = container(logical), inner.isEmpty || container.has(inner) else {
      throw ModelError(
        .logicalPath, "find", on: path.bytes, reason: "this device has no such container",
        hint: "'sandboxctl apps' lists the containers")
    }
    return (container, inner)
  }

  /// Returns the real path of a logical path, whether or not it exists.
  ///
  /// - Throws: The errors of `resolve(_:)`.
  package func realPath(of path: LogicalPath) throws(ModelError) -> ByteString {
    let (container, inner) = try resolve(path)
    return container.absolutePath.appending(inner)
  }

  /// Returns the logical path of an absolute path, or nil if it is in no container. Links above
  /// containers may be resolved or not.
  ///
  /// - Throws: `logicalPath` for a path in a container that contains `.`, `..` or a NUL.
  package func logicalPath(ofPath path: ByteString) throws(ModelError) -> LogicalPath? {
    for (place, inner) in index.containers(around: path) where containers[place].has(inner) {
      return try LogicalPath(containers[place].logical, inner)
    }
    return nil
  }
}

extension Container {
  /// Whether a path below its directory belongs to the container; false only for entries other than
  /// `member`.
  func has(_ inner: ByteString) -> Bool {
    member.map { inner.isWithin($0) } ?? true
  }
}
