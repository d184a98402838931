package import AppPackages
package import SystemIO

/// The planned migration of one app between two forms or homes, with everything that a user must
/// know beforehand.
package struct AppMigration: Sendable {
  /// The route.
  package let route: MigrationRoute
  /// The plan.
  package let plan: MigrationPlan
  /// The entries of the source that could not be read, relative to its home directory. They are not
  /// copied.
  package let problems: [PathRemark]
  /// The effects of the rules on the configuration files to copy.
  package let rewritings: [FileRewriting]
  /// The links to copy whose targets are changed so that they lead to the same entry.
  package let relinks: [Relink]
  /// The absolute paths outside the app's places that its configuration and links refer to.
  package let outside: [ByteString]
  /// The version of the app that last used the data, as stated in its files; nil if none does.
  package let dataVersion: AppVersion?

  /// The effect of a rule on a configuration file.
  package struct FileRewriting: Sendable, Hashable {
    /// The file in the target, relative to its home directory.
    package let path: ByteString
    /// The rule.
    package let rule: RewriteRule
    /// The replaced values.
    package let changes: [Rewriting.Change]
    /// The paths that the rule leaves unchanged because they are in no place of the app.
    package let outside: [Rewriting.Value]
    /// The values at unknown keys that still point to the old place.
    package let left: [Rewriting.Value]
    /// The reason why the file is left unchanged; nil if the rule can be applied.
    package let refusal: String?
  }

  /// A link with its old and its new target.
  package struct Relink: Sendable, Hashable {
    /// The link in the target, relative to its home directory.
    package let path: ByteString
    /// The target in the source.
    package let before: ByteString
    /// The target after the migration.
    package let after: ByteString
  }

  /// Plans a migration. Reads both homes and changes nothing.
  ///
  /// - Throws: `failed` if a home directory cannot be opened or the target cannot be read.
  package static func make(_ route: MigrationRoute) throws(OperationError) -> AppMigration {
    let survey = try MigrationSurvey(of: route.from.home, paths: route.sources)
    do throws(SystemError) {
      let (source, target) = (try MigrationHome(route.from), try MigrationHome(route.to))
      var failure: SystemError?
      let planner = MigrationPlanner(route) { path in
        do throws(SystemError) {
          return try target.entry(at: path)
        } catch {
          failure = failure ?? error
          return nil
        }
      }
      var plan = planner.plan(survey.entries)
      try settle(&plan, of: route, from: source, to: target)
      // An entry that cannot be seen must not be mistaken for a missing one.
      if let failure { throw failure }
      let problems = survey.problems.filter { !route.destination(of: $0.path).isSkipped }
      return AppMigration(route, plan, problems: problems, reading: source)
    } catch { throw OperationError(error) }
  }

  /// Finds the files and links among the conflicts that an earlier migration copied with new paths:
  /// the target has them already.
  private static func settle(
    _ plan: inout MigrationPlan, of route: MigrationRoute, from source: MigrationHome,
    to target: MigrationHome
  ) throws(SystemError) {
    let (mapping, links) = (route.mapping, LinkMapping(route))
    var conflicts: [MigrationPlan.Conflict] = []
    for conflict in plan.conflicts {
      let move = conflict.move
      let isDone: Bool
      switch move.entry.kind {
      case .symlink:
        let new = links.result(for: move).target
        let present = try target.entry(at: move.destination)?.target
        isDone = new != nil && present == new
      case .file:
        isDone = wasRewritten(move, of: route, by: mapping, from: source, to: target)
      default: isDone = false
      }
      if isDone { plan.present.append(move) } else { conflicts.append(conflict) }
    }
    plan.conflicts = conflicts
  }

  /// Whether the target has the content of a configuration file with its new paths. A file that
  /// cannot be read, or that its rule cannot read, is a conflict.
  private static func wasRewritten(
    _ move: MigrationPlan.Move, of route: MigrationRoute, by mapping: PathMapping,
    from source: MigrationHome, to target: MigrationHome
  ) -> Bool {
    let rules = (route.place(of: move.entry.path)?.place.rewrites ?? []).filter {
      $0.isFor(move.entry.path)
    }
    guard let limit = rules.map(\.maximumSize).min(),
      let file = try? source.file(move.entry.path),
      let own = try? file.readAll(limit: limit),
      let copy = try? target.file(move.destination),
      let present = try? copy.readAll(limit: 2 * limit)
    else { return false }
    var bytes = own
    for rule in rules {
      guard let result = try? rule.rewrite(bytes, by: mapping) else { return false }
      bytes = result.bytes
    }
    return bytes == present
  }

  private init(
    _ route: MigrationRoute, _ plan: MigrationPlan, problems: [PathRemark],
    reading source: MigrationHome
  ) {
    self.route = route
    self.plan = plan
    self.problems = problems
    dataVersion = DataVersion.newest(of: plan, reading: source)
    let mapping = route.mapping
    rewritings = plan.rewrites.map { rewrite in
      Self.rewriting(rewrite, by: mapping, reading: source)
    }
    var (relinks, outside): ([Relink], [ByteString]) = ([], [])
    let links = LinkMapping(route)
    for move in plan.moves where move.entry.kind == .symlink {
      let result = links.result(for: move)
      if let before = move.entry.target, let after = result.target {
        relinks.append(Relink(path: move.destination, before: before, after: after))
      }
      if let path = result.outside { outside.append(path) }
    }
    self.relinks = relinks
    outside += rewritings.flatMap(\.outside).map { ByteString($0.value) }.filter(\.isAbsolute)
    self.outside = Set(outside).sorted()
  }

  private static func rewriting(
    _ planned: MigrationPlan.PlannedRewrite, by mapping: PathMapping, reading source: MigrationHome
  ) -> FileRewriting {
    var result: Rewriting?
    var refusal: String?
    do {
      let file = try source.file(planned.move.entry.path)
      guard let bytes = try file.readAll(limit: planned.rule.maximumSize) else {
        throw RewriteRefusal(reason: "it has more than \(planned.rule.maximumSize) bytes")
      }
      result = try planned.rule.rewrite(bytes, by: mapping)
    } catch let error as RewriteRefusal {
      refusal = error.reason
    } catch let error as SystemError {
      refusal = error.reason
    } catch {
      refusal = "\(error)"
    }
    return FileRewriting(
      path: planned.move.destination, rule: planned.rule, changes: result?.changes ?? [],
      outside: result?.outside ?? [], left: result?.left ?? [], refusal: refusal)
  }

  /// Whether there is nothing to copy.
  package var isIdle: Bool { plan.moves.isEmpty }

  /// Whether the source has any data of the app.
  package var hasData: Bool {
    !plan.moves.isEmpty || !plan.present.isEmpty || !plan.conflicts.isEmpty
      || !plan.withoutPlace.isEmpty
  }

  /// Refuses data of a newer version of the app than the target's. The version that the data states
  /// takes precedence over that of the app in the source; if the version is unknown on one side,
  /// nothing is compared.
  package func refuseNewer(
    _ installed: AppVersion?, than target: AppVersion?
  ) throws(OperationError) {
    guard let source = dataVersion ?? installed, let target, target.isEarlier(than: source) else {
      return
    }
    throw OperationError(
      .failed, code: .downgradeRefused, "migrate", subject: route.to.app,
      reason: "the data is of version \(source.text), the app in the target has version "
        + target.text,
      hint: "update the app first, or add '--allow-downgrade'")
  }
}

extension MigrationHome {
  /// Opens the file at a path for reading, without changing its access time if possible.
  func file(_ path: ByteString) throws(SystemError) -> Descriptor {
    let real = real(path)
    return try withDirectory(real.parent) { directory throws(SystemError) in
      try directory.fileUntouched(real.lastComponent ?? "")
    }
  }
}
