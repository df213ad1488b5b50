SELECT id, space, title_share, question_share, fixed_kind FROM collection WHERE id = %(id)s AND deleted_at IS NULL FOR KEY SHARE
