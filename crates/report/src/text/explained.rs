//! What explains a failed request or fragmentation: figures that stand beside the reasons of a finding.

use vramscope_view::explained::{Fragmentation, PoolFree, Shortfall};

use super::{INDENT, Layout};
use crate::bytes::{counted, human};
use crate::page::Page;
use crate::place::Places;
use crate::sparkline::sparkline;
use crate::style::{Role, Span};
use crate::table::{Align, Table};
use crate::words;

/// When requests failed to fit.
pub(super) fn fragmentation(page: &mut Page, found: &Fragmentation) {
    if found.failed_fits == 0 {
        return;
    }
    let pieces = [
        sparkline(&found.failed_fits_over_time, 30),
        "failed fits over the run:".to_owned(),
        words::fits(found),
    ];
    page.pieces(Span::new(Role::Dim, "   fits"), INDENT + 2, Role::Plain, &pieces);
}

/// Who held what, and what was free where.
pub(super) fn shortfall(page: &mut Page, found: &Shortfall, layout: &Layout<'_>, places: &Places) {
    if !layout.verbose {
        return;
    }
    let mut table = Table::new(&[Align::Right, Align::Right, Align::Left]);
    for site in &found.sites {
        let place = Span::new(Role::Path, places.or_label(site.site.as_ref(), &site.label));
        table.row(vec![human(site.bytes).into(), counted(site.blocks, "block").into(), place]);
    }
    if found.other_places > 0 {
        let others = counted(found.other_places, "other place");
        table.row(vec![human(found.other_bytes).into(), Span::default(), others.into()]);
    }
    page.paragraph(Span::new(Role::Dim, "   held"), INDENT + 2, "when the request failed:");
    table.write(page, INDENT + 2);

    let mut table = Table::new(&[Align::Right; 6].into_iter().chain([Align::Left]).collect::<Vec<_>>());
    table.head(&["reserved", "held", "pending", "releasable", "stranded", "largest free", "for"]);
    for pool in &found.pools {
        let bytes =
            [pool.reserved, pool.allocated, pool.pending, pool.releasable, pool.stranded, pool.largest_free];
        let mut row: Vec<Span> = bytes.into_iter().map(|b| human(b).into()).collect();
        row.push(pool_name(pool).into());
        table.row(row);
    }
    table.write(page, INDENT + 2);
}

/// Which requests a pool serves, in words.
pub(crate) fn pool_name(pool: &PoolFree) -> String {
    let stream = match pool.stream {
        0 => String::new(),
        handle => format!(", stream {handle:#x}"),
    };
    let private = match pool.private_pool {
        None => String::new(),
        Some((a, b)) => format!(", private pool ({a}, {b})"),
    };
    format!("{} blocks{stream}{private}", pool.kind)
}
