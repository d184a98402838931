public import SystemIO

extension Device {
  /// The containers of an app but for the groups it shares, sorted by logical path.
  public func containers(of app: App) -> [Container] {
    containers.filter { $0.owner == app.identifier }
  }

  /// The group containers that an app may use, by what is known and what is guessed.
  public func groups(of app: App) -> [(container: Container, basis: GroupMembership.Basis)] {
    containers.compactMap { container in
      guard container.kind == .group,
        let found = app.groups.first(where: { $0.group == container.identifier })
      else { return nil }
      return (container, found.basis)
    }
  }

  /// The apps that belong to a group's container, with what says so.
  public func members(of group: Container) -> [(app: App, basis: GroupMembership.Basis)] {
    apps.compactMap { app in
      guard let found = app.groups.first(where: { $0.group == group.identifier }) else {
        return nil
      }
      return (app, found.basis)
    }
  }

  /// The containers that belong to no app: groups and directories aside, those of which nothing tells
  /// the app.
  public var containersWithoutApp: [Container] {
    containers.filter { $0.owner == nil && $0.kind != .group && $0.kind != .folder }
  }

  /// The container of that name, nil when this device has none.
  public func container(_ logical: LogicalContainer) -> Container? {
    index.place(of: logical).map { containers[$0] }
  }
}

extension Device {
  /// Where a logical path is on this device: its container and the path in it.
  ///
  /// - Throws: `logicalPath` when the path names no container, or none that this device has, or a
  ///   part of its directory that is not the container's.
  public func resolve(
    _ path: LogicalPath
  ) throws(ModelError) -> (container: Container, inner: ByteString) {
    guard let (logical, inner) = path.place else {
      throw ModelError(
        .logicalPath, "find", on: path.bytes, "it names no container",
        hint: "write it as 'apps/com.example.app/data/Documents'")
    }
    guard let container = container(logical), inner.isEmpty || container.has(inner) else {
      throw ModelError(
        .logicalPath, "find", on: path.bytes, "this device has no such container",
        hint: "'sandboxctl apps' lists the containers")
    }
    return (container, inner)
  }

  /// The absolute path of a logical path, whether or not anything is there.
  ///
  /// - Throws: what `resolve(_:)` throws.
  public func realPath(of path: LogicalPath) throws(ModelError) -> ByteString {
    let (container, inner) = try resolve(path)
    return container.absolutePath.appending(inner)
  }

  /// The logical path of an absolute path, with or without the links above containers followed; nil
  /// when it is in no container.
  ///
  /// - Throws: `logicalPath` for a path in a container that has `.`, `..` or a NUL in it.
  public func logicalPath(ofPath path: ByteString) throws(ModelError) -> LogicalPath? {
    for (place, inner) in index.containers(around: path) where containers[place].has(inner) {
      return try LogicalPath(containers[place].logical, inner)
    }
    return nil
  }
}

extension Container {
  /// Whether a path below its directory is the container's own: all are but where there is a `member`.
  func has(_ inner: ByteString) -> Bool {
    member.map { inner.isWithin($0) } ?? true
  }
}
