/// The handling of data when the app is updated.
package enum UpdateDisposition: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
  /// The platform guarantees to preserve it.
  case preserve
  /// It may be preserved, without guarantee.
  case mayVanish = "may-vanish"
  /// The new version provides its own.
  case replace
  /// It is deleted.
  case discard
}

/// The handling of data on restore.
package enum RestoreDisposition: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
  /// It is restored as stored.
  case restore
  /// The directory is restored empty.
  case recreateEmpty = "recreate-empty"
  /// It is not restored.
  case skip
  /// It is removed from the target if a whole container is restored.
  case remove
  /// The layout writes it again, such as container metadata with its UUID.
  case regenerate
}
